//! Rows of results, as text for a terminal and as Markdown for the page.

/// One line of the table.
pub struct Row {
    pub workload: String,
    pub target: String,
    pub measured: String,
    /// How many times the floor's processor time.
    pub ratio: Option<f64>,
    pub verdict: TargetVerdict,
}

#[derive(Clone, Copy, PartialEq)]
pub enum TargetVerdict {
    Met,
    Missed,
    /// There is no target.
    Told,
    /// Not measured, or with wrong replies.
    Failed,
}

impl Row {
    pub fn is_failure(&self) -> bool {
        self.verdict == TargetVerdict::Failed
    }

    fn cells(&self) -> [String; 5] {
        let ratio = self.ratio.map_or(String::new(), |ratio| format!("{ratio:.1}"));
        let verdict = match self.verdict {
            TargetVerdict::Met => "met",
            TargetVerdict::Missed => "NOT MET",
            TargetVerdict::Told => "",
            TargetVerdict::Failed => "FAILED",
        };
        [self.workload.clone(), self.target.clone(), self.measured.clone(), ratio, verdict.to_owned()]
    }
}

const HEAD: [&str; 5] = ["workload", "target", "measured", "x floor", "met"];

pub fn text(rows: &[Row]) -> String {
    let lines: Vec<[String; 5]> = std::iter::once(HEAD.map(str::to_owned)).chain(rows.iter().map(Row::cells)).collect();
    let widths: Vec<usize> =
        (0..5).map(|column| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0)).collect();
    let mut text = String::new();
    for line in lines {
        for (cell, width) in line.iter().zip(&widths) {
            text += &format!("{cell:<width$}  ");
        }
        text.truncate(text.trim_end_matches(' ').len());
        text.push('\n');
    }
    text
}

pub fn markdown(rows: &[Row]) -> String {
    let mut text = format!("| {} |\n|---|---|---|---|---|\n", HEAD.join(" | "));
    for row in rows {
        text += &format!("| {} |\n", row.cells().map(|cell| cell.replace('|', "\\|").replace('\n', " ")).join(" | "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_in_both_forms() {
        let rows = [
            row("send", "<= 45 us", "31.0 us", Some(3.44), TargetVerdict::Met),
            row("binary", "", "9.1 MB", None, TargetVerdict::Told),
        ];
        assert_eq!(
            text(&rows),
            "workload  target    measured  x floor  met\nsend      <= 45 us  31.0 us   3.4      met\nbinary              9.1 MB\n"
        );
        assert_eq!(
            markdown(&rows),
            "| workload | target | measured | x floor | met |\n|---|---|---|---|---|\n\
             | send | <= 45 us | 31.0 us | 3.4 | met |\n| binary |  | 9.1 MB |  |  |\n"
        );
    }

    fn row(workload: &str, target: &str, measured: &str, ratio: Option<f64>, verdict: TargetVerdict) -> Row {
        let [workload, target, measured] = [workload, target, measured].map(str::to_owned);
        Row { workload, target, measured, ratio, verdict }
    }
}
