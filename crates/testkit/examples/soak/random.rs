//! Chance that can be had again: the same seed makes the same choices, as far as clocks and threads allow.

pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// From `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    /// So many times in a hundred.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }

    pub fn one_of<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.next() as usize % items.len()]
    }

    /// One of several, by their weights.
    pub fn weighted<T: Copy>(&mut self, items: &[(u64, T)]) -> T {
        let total = items.iter().map(|(weight, _)| weight).sum::<u64>();
        let mut left = self.next() % total;
        for (weight, item) in items {
            if left < *weight {
                return *item;
            }
            left -= weight;
        }
        unreachable!("what is left is less than the total")
    }

    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
