//! Pages of 50 tasks: one after the other through the whole list, or the newest again and again.

use crate::check::{self, Wrong};
use crate::connection::Connection;
use crate::place::{PAGE, Place};
use crate::stage::{Done, Operation};

/// Which pages are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pages {
    /// From the first to the last, and again.
    All,
    /// The first alone, as somebody who watches a server does.
    Newest,
}

pub struct List {
    place: Place,
    pages: Pages,
    token: String,
    /// How many tasks the pages of this round had.
    seen: u64,
}

impl List {
    pub fn new(place: &Place, pages: Pages) -> Option<Self> {
        place.list("").map(|_| Self { place: place.clone(), pages, token: String::new(), seen: 0 })
    }
}

impl Operation for List {
    type Connection = Connection;

    async fn once(&mut self, connection: &mut Connection, _number: u64) -> Result<Done, Wrong> {
        let request = self.place.list(&self.token).expect("it had lists before");
        let reply = connection.exchange(&request).await?;
        let wrong = |what: &str| Err(Wrong::reply(what, reply.status, reply.body));
        if reply.status != 200 {
            return wrong("refused");
        }
        // A task has one status; its messages have none.
        let tasks = check::count(reply.body, b"\"status\"") as u64;
        // Members of the page come after those of the tasks, or before; no task has one of the same name.
        let token = check::string(reply.body, b"\"nextPageToken\"").unwrap_or_default();
        self.seen += tasks;
        if !token.is_empty() {
            if tasks != PAGE {
                return wrong("a page is not full, but another follows");
            }
            match self.pages {
                Pages::All => self.token = String::from_utf8_lossy(token).into_owned(),
                Pages::Newest => self.seen = 0,
            }
            return Ok(Done::ONE);
        }
        // Others may send meanwhile, so that the total grows while we walk.
        if check::whole_number(reply.body, b"\"totalSize\"").is_some_and(|total| self.seen > total) {
            return wrong("the pages have more tasks than there are");
        }
        self.token.clear();
        self.seen = 0;
        Ok(Done::ONE)
    }
}
