//! How long things took: counts in log-linear buckets.
//!
//! Each power of two is cut into 64 equal parts, so a figure is at most 1.6 % above the truth, a record costs a
//! shift and an addition, and histograms of many connections are added up without loss.

use std::time::Duration;

use serde::Serialize;

const PARTS_LOG: u32 = 6;
const PARTS: u64 = 1 << PARTS_LOG;
/// Beyond 2^40 ns (18 minutes) everything is the same to us.
const LARGEST: u64 = (1 << 40) - 1;

#[derive(Debug, Clone, Default)]
pub struct Histogram {
    /// Grows to the largest value that was seen.
    counts: Vec<u64>,
    total: u64,
    max: u64,
}

impl Histogram {
    pub fn record(&mut self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(LARGEST).min(LARGEST);
        let bucket = bucket(nanos);
        if self.counts.len() <= bucket {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += 1;
        self.total += 1;
        self.max = self.max.max(nanos);
    }

    pub fn add(&mut self, other: &Histogram) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (ours, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *ours += theirs;
        }
        self.total += other.total;
        self.max = self.max.max(other.max);
    }

    /// None when nothing was recorded.
    pub fn summary(&self) -> Option<Quantiles> {
        (self.total > 0).then(|| Quantiles {
            p50: self.micros(0.50),
            p90: self.micros(0.90),
            p99: self.micros(0.99),
            max: rounded(self.max),
        })
    }

    /// The value that this share of all records does not exceed, in microseconds.
    fn micros(&self, share: f64) -> f64 {
        let wanted = ((self.total as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return rounded(upper(bucket).min(self.max));
            }
        }
        rounded(self.max)
    }
}

/// Microseconds, as reports show them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Quantiles {
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    pub max: f64,
}

fn bucket(nanos: u64) -> usize {
    if nanos < PARTS {
        return nanos as usize;
    }
    let shift = nanos.ilog2() - PARTS_LOG;
    // The part begins with a one bit, so the first bucket of each power follows the last one of the power before.
    (u64::from(shift) * PARTS + (nanos >> shift)) as usize
}

/// The largest value of the bucket.
fn upper(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < PARTS {
        return bucket;
    }
    let shift = bucket / PARTS - 1;
    let part = bucket - shift * PARTS;
    ((part + 1) << shift) - 1
}

fn rounded(nanos: u64) -> f64 {
    (nanos as f64 / 100.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_lies_in_its_bucket() {
        for nanos in (0..5000).chain([65_535, 65_536, 1_000_000, 123_456_789, LARGEST]) {
            let top = upper(bucket(nanos));
            assert!(top >= nanos && top - nanos <= nanos / PARTS, "{nanos} is shown as {top}");
            assert!(bucket(top + 1) == bucket(nanos) + 1, "after {nanos}");
        }
    }

    #[test]
    fn quantiles_of_a_thousand() {
        let (mut odd, mut even) = (Histogram::default(), Histogram::default());
        for micros in 1..=1000 {
            let half = if micros % 2 == 0 { &mut even } else { &mut odd };
            half.record(Duration::from_micros(micros));
        }
        odd.add(&even);
        let quantiles = odd.summary().unwrap();
        for (shown, exact) in [(quantiles.p50, 500.0), (quantiles.p90, 900.0), (quantiles.p99, 990.0)] {
            assert!((exact..exact * 1.02).contains(&shown), "{shown} for {exact}");
        }
        assert_eq!(quantiles.max, 1000.0);
    }

    #[test]
    fn the_ends() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.summary(), None);
        histogram.record(Duration::from_secs(100_000));
        assert_eq!(histogram.summary().unwrap().p50, rounded(LARGEST));
    }
}
