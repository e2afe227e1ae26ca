//! A count of something per owner, and of all owners together.
//!
//! The owner that comes first is counted without a map, so a server with one owner pays nothing for the others.

use std::collections::HashMap;

use sabir_model::Owner;

#[derive(Default)]
pub(super) struct OwnerCounts {
    total: usize,
    first: Option<(Owner, usize)>,
    others: HashMap<Owner, usize>,
}

impl OwnerCounts {
    pub(super) fn total(&self) -> usize {
        self.total
    }

    pub(super) fn of(&self, owner: &Owner) -> usize {
        match &self.first {
            Some((first, count)) if first == owner => *count,
            _ => self.others.get(owner).copied().unwrap_or_default(),
        }
    }

    pub(super) fn add(&mut self, owner: &Owner) {
        self.total += 1;
        match &mut self.first {
            Some((first, count)) if first == owner => *count += 1,
            None | Some((_, 0)) if self.others.is_empty() => self.first = Some((owner.clone(), 1)),
            _ => *self.others.entry(owner.clone()).or_default() += 1,
        }
    }

    pub(super) fn remove(&mut self, owner: &Owner) {
        self.total -= 1;
        match &mut self.first {
            Some((first, count)) if first == owner => *count -= 1,
            _ => {
                if let Some(count) = self.others.get_mut(owner) {
                    *count -= 1;
                    if *count == 0 {
                        self.others.remove(owner);
                    }
                }
            }
        }
    }
}
