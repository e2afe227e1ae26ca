//! The results section of docs/internals/performance.md; the rest of the page is written by hand.

use std::fs;

use anyhow::{Context, Result};

use crate::bench::machine::BenchMachine;
use crate::bench::table::{self, Row};
use crate::workspace::Workspace;

const BEGIN: &str = "<!-- results -->";
const END: &str = "<!-- /results -->";

pub fn write(workspace: &Workspace, machine: &BenchMachine, rows: &[Row]) -> Result<()> {
    let path = workspace.root.join("docs/internals/performance.md");
    let page = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let results = format!("{machine}.\n\n{}", table::markdown(rows));
    let page = with_results(&page, &results).with_context(|| format!("{} has no {BEGIN} and {END}", path.display()))?;
    fs::write(&path, page)?;
    println!("written to docs/internals/performance.md");
    Ok(())
}

fn with_results(page: &str, results: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n\n{results}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_results_change() {
        let page = format!("# Speed\n{BEGIN}\nold\n{END}\nby hand\n");
        let expected = format!("# Speed\n{BEGIN}\n\nnew\n\n{END}\nby hand\n");
        assert_eq!(with_results(&page, "new\n"), Some(expected.clone()));
        assert_eq!(with_results(&expected, "new\n"), Some(expected));
        assert_eq!(with_results("# Speed\n", "new\n"), None);
    }
}
