//! What a check found, and how it is shown.

use serde_json::json;

use crate::config::Audience;
use crate::terminal_text::visible;

/// What a finding is about, in the order in which they are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Area {
    Configuration,
    Store,
    Agents,
    Ports,
    Clock,
    Limits,
    Certificates,
    Server,
    Webhooks,
}

impl Area {
    fn name(self) -> &'static str {
        match self {
            Area::Configuration => "configuration",
            Area::Store => "store",
            Area::Agents => "agents",
            Area::Ports => "ports",
            Area::Clock => "clock",
            Area::Limits => "limits",
            Area::Certificates => "certificates",
            Area::Server => "server",
            Area::Webhooks => "webhooks",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Ok,
    /// It works, but not for long, or not as the operator may think.
    Warning,
    Problem,
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Level::Ok => "ok",
            Level::Warning => "warning",
            Level::Problem => "problem",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub area: Area,
    pub level: Level,
    pub what: String,
    /// What to do; empty: nothing.
    pub next: String,
}

impl Finding {
    pub fn ok(area: Area, what: impl Into<String>) -> Self {
        Self { area, level: Level::Ok, what: what.into(), next: String::new() }
    }

    pub fn warning(area: Area, what: impl Into<String>, next: impl Into<String>) -> Self {
        Self { area, level: Level::Warning, what: what.into(), next: next.into() }
    }

    pub fn problem(area: Area, what: impl Into<String>, next: impl Into<String>) -> Self {
        Self { area, level: Level::Problem, what: what.into(), next: next.into() }
    }

    /// Of an error text, whose last part says what to do.
    pub fn of_words(area: Area, level: Level, words: &str) -> Self {
        let (what, next) = words.rsplit_once("; ").unwrap_or((words, ""));
        Self { area, level, what: what.to_owned(), next: next.to_owned() }
    }
}

pub struct Report {
    pub findings: Vec<Finding>,
}

impl Report {
    pub fn is_well(&self) -> bool {
        self.count(Level::Problem) == 0
    }

    fn count(&self, level: Level) -> usize {
        self.findings.iter().filter(|finding| finding.level == level).count()
    }

    pub fn show(&self, audience: Audience) -> String {
        let (problems, warnings) = (self.count(Level::Problem), self.count(Level::Warning));
        if audience == Audience::Program {
            let finding = |Finding { area, level, what, next }: &Finding| {
                let next = (!next.is_empty()).then_some(next);
                json!({"area": area.name(), "level": level.name(), "what": what, "next": next})
            };
            let findings: Vec<_> = self.findings.iter().map(finding).collect();
            let report =
                json!({"ok": self.is_well(), "problems": problems, "warnings": warnings, "findings": findings});
            return format!("{report}\n");
        }
        let mut out = String::new();
        for Finding { area, level, what, next } in &self.findings {
            out += &format!("{:8} {:14} {}\n", level.name(), area.name(), visible(what));
            if !next.is_empty() {
                out += &format!("{:23} -> {}\n", "", visible(next));
            }
        }
        let count = |number: usize, word: &str| match number {
            0 => format!("no {word}s"),
            1 => format!("1 {word}"),
            number => format!("{number} {word}s"),
        };
        out + &format!("\n{}, {}\n", count(problems, "problem"), count(warnings, "warning"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_see_lines_and_programs_json() {
        let findings = vec![
            Finding::ok(Area::Store, "fine"),
            Finding::of_words(Area::Ports, Level::Problem, "127.0.0.1:1 is\u{1b} used; stop it"),
        ];
        let report = Report { findings };
        assert!(!report.is_well());
        let expected = "ok       store          fine
problem  ports          127.0.0.1:1 is\u{fffd} used
                        -> stop it

1 problem, no warnings
";
        assert_eq!(report.show(Audience::Person), expected);
        let json: serde_json::Value = serde_json::from_str(&report.show(Audience::Program)).unwrap();
        assert_eq!((&json["ok"], &json["findings"][1]["next"]), (&json!(false), &json!("stop it")));
        assert_eq!(json["findings"][0]["next"], json!(null));
    }
}
