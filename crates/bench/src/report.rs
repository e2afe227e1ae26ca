//! What came out, for a program and for a person.

use serde::Serialize;

use crate::histogram::Quantiles;

/// Times are in microseconds, memory in bytes.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    pub url: String,
    pub workload: &'static str,
    pub dialect: &'static str,
    pub connections: usize,
    pub seconds: f64,
    /// What an operation is.
    pub unit: &'static str,
    pub operations: u64,
    pub per_second: f64,
    /// Replies that were not as they must be.
    pub wrong: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_wrong: Option<String>,
    /// Of a whole request, or of a stream from the request to its end.
    pub latency_us: Option<Quantiles>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_event_us: Option<Quantiles>,
    /// The rate of the same reader without those who do not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alone_per_second: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<Server>,
    pub notices: Vec<String>,
}

/// What the server's process used.
#[derive(Debug, Clone, Serialize)]
pub struct Server {
    pub cpu_us_per_operation: Option<f64>,
    /// How many cores it kept busy.
    pub cores: Option<f64>,
    pub rss: u64,
    /// What one open stream takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rss_per_stream: Option<u64>,
}

impl Report {
    /// A table of a few lines.
    pub fn table(&self) -> String {
        let mut rows = vec![
            ("workload", format!("{}, {}, {} connections", self.workload, self.dialect, self.connections)),
            (
                self.unit,
                format!("{} in {:.1} s, {}/s", grouped(self.operations), self.seconds, grouped(self.per_second as u64)),
            ),
        ];
        if let Some(latency) = &self.latency_us {
            rows.push(("latency", spelled(latency)));
        }
        if let Some(first) = &self.first_event_us {
            rows.push(("first event", spelled(first)));
        }
        if let Some(alone) = self.alone_per_second {
            rows.push(("alone", format!("{}/s", grouped(alone as u64))));
        }
        if let Some(server) = &self.server {
            if let (Some(cpu), Some(cores)) = (server.cpu_us_per_operation, server.cores) {
                rows.push(("server CPU", format!("{cpu:.1} us each, {cores:.2} cores")));
            }
            let each = server.rss_per_stream.map(|bytes| format!(", {:.1} KB per stream", bytes as f64 / 1000.0));
            rows.push(("server memory", format!("{:.1} MB{}", server.rss as f64 / 1e6, each.unwrap_or_default())));
        }
        let verdict = match (&self.first_wrong, self.wrong) {
            (_, 0) => "none".to_owned(),
            (first, wrong) => format!("{}, the first: {}", grouped(wrong), first.as_deref().unwrap_or("unknown")),
        };
        rows.push(("wrong replies", verdict));
        let mut table: String = rows.iter().map(|(name, value)| format!("{name:<14} {value}\n")).collect();
        for notice in &self.notices {
            table += &format!("{:<14} {notice}\n", "notice");
        }
        table
    }
}

fn spelled(quantiles: &Quantiles) -> String {
    let Quantiles { p50, p90, p99, max } = quantiles;
    format!("p50 {}, p90 {}, p99 {}, max {}", time(*p50), time(*p90), time(*p99), time(*max))
}

fn time(micros: f64) -> String {
    match micros {
        _ if micros < 1000.0 => format!("{micros:.0} us"),
        _ if micros < 1e6 => format!("{:.1} ms", micros / 1e3),
        _ => format!("{:.1} s", micros / 1e6),
    }
}

/// 1234567 as 1,234,567.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        for (number, expected) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), expected);
        }
        for (micros, expected) in [(12.4, "12 us"), (1500.0, "1.5 ms"), (2_500_000.0, "2.5 s")] {
            assert_eq!(time(micros), expected);
        }
    }
}
