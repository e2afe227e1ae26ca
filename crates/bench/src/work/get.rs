//! A task by its id: one that has ended and lies in the store, or one that works while its stream is read.

use crate::check::{self, Wrong};
use crate::connection::Connection;
use crate::place::Place;
use crate::probe::{Agent, TEXT};
use crate::request::Request;
use crate::stage::{Done, Operation};
use crate::work::send;

/// So many tasks per connection are asked for in turn.
const TASKS: u64 = 50;
/// Long enough for any measurement; it is canceled after it.
const WORKS_FOR: &str = "slow 3600 bench";

pub struct Get {
    place: Place,
    agent: Agent,
    tasks: Vec<(Request, u64)>,
    next: usize,
}

impl Get {
    /// Makes the tasks.
    pub async fn new(place: &Place, agent: Agent, connection: &mut Connection, worker: u64) -> Result<Self, Wrong> {
        let mut request = place.send(TEXT);
        let mut tasks = vec![];
        for task in 0..TASKS {
            // Beyond all numbers that a run reaches.
            let number = 900_000_000_000 + worker * TASKS + task;
            let reply = connection.exchange(request.numbered(number)).await?;
            let id = place.task_id(reply.body).ok_or_else(|| Wrong::reply("no task", reply.status, reply.body))?;
            tasks.push((Request::new(place.task_of(&id)), number));
        }
        Ok(Self { place: place.clone(), agent, tasks, next: 0 })
    }
}

impl Operation for Get {
    type Connection = Connection;

    async fn once(&mut self, connection: &mut Connection, number: u64) -> Result<Done, Wrong> {
        self.next = (self.next + 1) % self.tasks.len();
        let (request, expected) = &mut self.tasks[self.next];
        let reply = connection.exchange(request.numbered(number)).await?;
        send::answered(&reply, &self.place, self.agent, *expected)?;
        Ok(Done::ONE)
    }
}

pub struct GetLive {
    place: Place,
    id: String,
    request: Request,
    /// Never read again, but open.
    _stream: Connection,
}

impl GetLive {
    /// Starts a task and leaves its stream open. None where there are no streams.
    pub async fn new(place: &Place, worker: u64) -> Result<Option<Self>, Wrong> {
        let Some(mut begin) = place.stream(WORKS_FOR) else { return Ok(None) };
        let mut stream = Connection::open(place.address).await?;
        stream.stream(begin.numbered(900_000_000_000 + worker)).await?;
        let id = loop {
            let frame = stream.frame().await?.ok_or_else(|| Wrong::Lost("a stream ended at once".into()))?;
            if let Some(id) = place.task_id(frame.data) {
                break id;
            }
        };
        let request = Request::new(place.task_of(&id));
        Ok(Some(Self { place: place.clone(), id, request, _stream: stream }))
    }

    pub async fn cancel(&self) -> Result<(), Wrong> {
        let mut connection = Connection::open(self.place.address).await?;
        let mut cancel = Request::new(self.place.cancel(&self.id));
        connection.exchange(cancel.numbered(0)).await?;
        Ok(())
    }
}

impl Operation for GetLive {
    type Connection = Connection;

    async fn once(&mut self, connection: &mut Connection, number: u64) -> Result<Done, Wrong> {
        let reply = connection.exchange(self.request.numbered(number)).await?;
        let is_ours = check::has(reply.body, self.id.as_bytes()) && check::has(reply.body, WORKS_FOR.as_bytes());
        let is_open = !self.place.spelling().is_completed(reply.body);
        if reply.status != 200 || !is_ours || !is_open {
            return Err(Wrong::reply("not the task that works", reply.status, reply.body));
        }
        Ok(Done::ONE)
    }
}
