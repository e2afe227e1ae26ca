//! Numbers of webhooks, of which none is used twice, also over restarts.
//!
//! They are given out from memory. The file has a number that is at least as high as any that was given out; it is raised by
//! `BLOCK` at a time, so that nearly no webhook has to write it.

use rusqlite::{Connection, Result};

use crate::WebhookNo;

/// So many numbers at most are left out by a restart.
const BLOCK: u64 = 128;

pub(super) struct WebhookNumbers {
    last: u64,
    /// As in the file, with what the open transaction has written.
    reserved: u64,
    /// As in the file.
    committed: u64,
}

impl WebhookNumbers {
    pub fn load(conn: &Connection) -> Result<Self> {
        let sql = "SELECT max((SELECT coalesce(max(highest), 0) FROM webhook_numbers),
                              (SELECT coalesce(max(number), 0) FROM webhooks WHERE at_rest = 0))";
        let highest = conn.query_row(sql, (), |row| row.get::<_, i64>(0))?.unsigned_abs();
        Ok(Self { last: highest, reserved: highest, committed: highest })
    }

    pub fn next(&mut self, conn: &Connection) -> Result<WebhookNo> {
        if self.last >= self.reserved {
            let reserved = self.last + BLOCK;
            conn.prepare_cached("UPDATE webhook_numbers SET highest = ?1")?.execute((reserved as i64,))?;
            self.reserved = reserved;
        }
        self.last += 1;
        Ok(WebhookNo(self.last))
    }

    pub fn committed(&mut self) {
        self.committed = self.reserved;
    }

    /// Numbers that were given out stay used.
    pub fn rolled_back(&mut self) {
        self.reserved = self.committed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::schema;

    #[test]
    fn no_number_is_used_twice() {
        let mut conn = Connection::open_in_memory().unwrap();
        schema::migrate(&mut conn, 0).unwrap();
        let mut given = Vec::new();
        for round in 0..4 {
            let mut numbers = WebhookNumbers::load(&conn).unwrap();
            for step in 0..BLOCK * 2 {
                conn.execute_batch("BEGIN").unwrap();
                let number = numbers.next(&conn).unwrap();
                if (step + round) % 3 == 0 {
                    conn.execute_batch("ROLLBACK").unwrap();
                    numbers.rolled_back();
                } else {
                    conn.execute_batch("COMMIT").unwrap();
                    numbers.committed();
                    given.push(number);
                }
            }
        }
        assert!(given.is_sorted_by(|one, next| one < next));
    }
}
