//! Parties: pairs of an owner and an agent, each with a number that stands for it in all other tables.
//!
//! A party never changes and is never removed, so its number may be kept in memory for good.

use std::collections::HashMap;
use std::sync::RwLock;

use sabir_model::{AgentId, Owner};
use tokio_postgres::{Error, Row};

use super::UNBROKEN;
use super::connections::Connections;
use super::link::Link;
use crate::StoreError;

/// So many parties are remembered; beyond that, all are forgotten and looked up again.
const MAX_KNOWN: usize = 100_000;

const FIND: &str = "SELECT no FROM parties WHERE sha256(owner) = sha256($1) AND owner = $1 AND agent = $2";

const OF_OWNER: &str = "SELECT no, agent FROM parties WHERE sha256(owner) = sha256($1) AND owner = $1 ORDER BY agent";

const FIND_ALL: &str = "SELECT wanted.place, parties.no
    FROM unnest($1::bytea[], $2::text[]) WITH ORDINALITY AS wanted(owner, agent, place)
    JOIN parties ON sha256(parties.owner) = sha256(wanted.owner) AND parties.owner = wanted.owner
        AND parties.agent = wanted.agent";

const MAKE_ALL: &str = "INSERT INTO parties (owner, agent) SELECT * FROM unnest($1::bytea[], $2::text[])
    ON CONFLICT DO NOTHING";

#[derive(Default)]
pub(super) struct Parties {
    known: RwLock<HashMap<(Owner, AgentId), i32>>,
}

impl Parties {
    /// The number of a party, which is made if it is new.
    pub async fn number(&self, db: &Connections, owner: &Owner, agent: &AgentId) -> Result<i32, StoreError> {
        // Two nodes may make the same party at the same time: then the second finds that of the first.
        loop {
            if let Some(known) = self.find(db, owner, agent).await? {
                return Ok(known);
            }
            let (owner, agent) = (owner.as_key().as_bytes(), agent.as_str());
            db.execute("INSERT INTO parties (owner, agent) VALUES ($1, $2) ON CONFLICT DO NOTHING", &[&owner, &agent])
                .await?;
        }
    }

    /// The number of a party, if anybody has used it yet.
    pub async fn find(&self, db: &Connections, owner: &Owner, agent: &AgentId) -> Result<Option<i32>, StoreError> {
        if let Some(known) = self.known(owner, agent) {
            return Ok(Some(known));
        }
        let (key, name) = (owner.as_key().as_bytes(), agent.as_str());
        let row = db.query_opt(FIND, &[&key, &name]).await?;
        let Some(row) = row else { return Ok(None) };
        let number: i32 = row.try_get(0)?;
        self.remember([((owner.clone(), agent.clone()), number)]);
        Ok(Some(number))
    }

    /// The numbers of several parties. Those that are new are made.
    pub async fn numbers(
        &self,
        link: &Link,
        mut wanted: Vec<(&Owner, &AgentId)>,
    ) -> Result<HashMap<(Owner, AgentId), i32>, Error> {
        // In the same order on all nodes, so that they do not wait for each other in a circle.
        wanted.sort_unstable();
        wanted.dedup();
        let mut numbers = HashMap::new();
        for is_made in [false, true] {
            wanted.retain(|(owner, agent)| {
                let number = self.known(owner, agent);
                numbers.extend(number.map(|number| (((*owner).clone(), (*agent).clone()), number)));
                number.is_none()
            });
            if wanted.is_empty() {
                break;
            }
            let owners: Vec<&[u8]> = wanted.iter().map(|(owner, _)| owner.as_key().as_bytes()).collect();
            let agents: Vec<&str> = wanted.iter().map(|(_, agent)| agent.as_str()).collect();
            if is_made {
                link.execute(MAKE_ALL, &[&owners, &agents]).await?;
            }
            let mut found = Vec::new();
            for row in link.query(FIND_ALL, &[&owners, &agents]).await? {
                let (owner, agent) = wanted[row.get::<_, i64>(0) as usize - 1];
                found.push(((owner.clone(), agent.clone()), row.get(1)));
            }
            numbers.extend(found.iter().cloned());
            self.remember(found);
            wanted.retain(|(owner, agent)| !numbers.contains_key(&((*owner).clone(), (*agent).clone())));
        }
        Ok(numbers)
    }

    fn remember(&self, found: impl IntoIterator<Item = ((Owner, AgentId), i32)>) {
        let mut known = self.known.write().expect(UNBROKEN);
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        known.extend(found);
    }

    /// The number of a party that this node has used before.
    pub fn known(&self, owner: &Owner, agent: &AgentId) -> Option<i32> {
        self.known.read().expect(UNBROKEN).get(&(owner.clone(), agent.clone())).copied()
    }

    /// All parties of an owner.
    pub async fn of_owner(&self, db: &Connections, owner: &Owner) -> Result<Vec<(i32, AgentId)>, StoreError> {
        let key = owner.as_key().as_bytes();
        let rows = db.query(OF_OWNER, &[&key]).await?;
        rows.iter().map(|row| Ok((row.try_get(0)?, agent(row, 1)?))).collect()
    }

    pub async fn all(&self, db: &Connections) -> Result<Vec<(i32, Owner, AgentId)>, StoreError> {
        let rows = db.query("SELECT no, owner, agent FROM parties ORDER BY no", &[]).await?;
        rows.iter().map(|row| Ok((row.try_get(0)?, owner(row, 1)?, agent(row, 2)?))).collect()
    }
}

fn owner(row: &Row, column: usize) -> Result<Owner, StoreError> {
    let key = str::from_utf8(row.try_get(column)?).map_err(|error| StoreError::Failed(error.into()))?;
    Ok(Owner::from_key(key))
}

fn agent(row: &Row, column: usize) -> Result<AgentId, StoreError> {
    let name: &str = row.try_get(column)?;
    AgentId::parse(name).map_err(|error| StoreError::Failed(error.into()))
}
