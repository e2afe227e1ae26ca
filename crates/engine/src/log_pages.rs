//! Pages of a log, read from the store for readers who have fallen behind the tail in memory.
//!
//! Many readers of one task are often behind at the same place. Each page is read once for all of them and lives as
//! long as one of them holds it. So its events are also encoded once, and slow readers share the memory.

use std::sync::{Arc, Mutex, Weak};

use sabir_model::Seq;
use sabir_store::{Store, StoreError, TaskNo};
use tokio::sync::OnceCell;

use crate::LogEntry;
use crate::sharded::lock;

/// Events per page. A slow reader holds a page in memory, so it is only as large as makes a query worthwhile.
const PAGE: usize = 64;

#[derive(Default)]
pub(crate) struct LogPages {
    pages: Mutex<Vec<Weak<LogPage>>>,
}

/// A page that several readers share.
pub(crate) struct LogPage {
    after: Seq,
    entries: OnceCell<Vec<Arc<LogEntry>>>,
}

impl LogPages {
    /// The events after this one, as many as a page holds; none at the end of the log.
    pub(crate) async fn read(
        &self,
        store: &dyn Store,
        no: TaskNo,
        after: Seq,
    ) -> Result<(Arc<LogPage>, Vec<Arc<LogEntry>>), StoreError> {
        let page = self.page_with(after + 1);
        let entries = page.entries.get_or_try_init(|| async {
            let recorded = store.events(no, page.after, PAGE).await?;
            let entries = recorded.into_iter().map(|recorded| LogEntry::new(recorded.seq, recorded.event));
            Ok::<_, StoreError>(entries.map(Arc::new).collect())
        });
        let entries = entries.await?.iter().filter(|entry| entry.seq > after).cloned().collect();
        Ok((page, entries))
    }

    /// The page that contains this event, if a reader holds it or is reading it; otherwise a new page.
    fn page_with(&self, seq: Seq) -> Arc<LogPage> {
        let mut pages = lock(&self.pages);
        let mut known = None;
        pages.retain(|page| match page.upgrade() {
            Some(page) => {
                if page.has(seq) {
                    known = Some(page);
                }
                true
            }
            None => false,
        });
        known.unwrap_or_else(|| {
            let page = Arc::new(LogPage { after: seq - 1, entries: OnceCell::new() });
            pages.push(Arc::downgrade(&page));
            page
        })
    }
}

impl LogPage {
    fn has(&self, seq: Seq) -> bool {
        match self.entries.get() {
            Some(entries) => self.after < seq && entries.last().is_some_and(|last| seq <= last.seq),
            None => seq == self.after + 1,
        }
    }
}
