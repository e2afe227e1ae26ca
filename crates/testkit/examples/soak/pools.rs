//! Tasks that one client leaves for another.

use std::sync::Mutex;

use crate::random::Random;

const MOST: usize = 400;

#[derive(Default)]
pub struct Pools {
    /// Tasks that can be read and canceled by anyone; they ask nothing.
    pub recent: Pool<String>,
    /// Tasks that wait for an answer. Who takes one has it for himself.
    pub asking: Pool<String>,
    /// Streams that broke off: the task, the dialect's index and the last number that was seen.
    pub broken: Pool<(String, usize, u64)>,
}

pub struct Pool<T>(Mutex<Vec<T>>);

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> Pool<T> {
    pub fn put(&self, item: T, random: &mut Random) {
        let mut items = self.0.lock().expect("nobody panics over it");
        if items.len() < MOST {
            items.push(item);
        } else {
            let place = random.between(0, MOST as u64 - 1) as usize;
            items[place] = item;
        }
    }

    pub fn take(&self, random: &mut Random) -> Option<T> {
        let mut items = self.0.lock().expect("nobody panics over it");
        let last = items.len().checked_sub(1)? as u64;
        Some(items.swap_remove(random.between(0, last) as usize))
    }

    pub fn look(&self, random: &mut Random) -> Option<T> {
        let items = self.0.lock().expect("nobody panics over it");
        (!items.is_empty()).then(|| random.one_of(&items).clone())
    }
}
