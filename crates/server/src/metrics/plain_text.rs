//! The text format of Prometheus before OpenMetrics (0.0.4), made from an OpenMetrics page.
//!
//! They differ in little: there, the name of a counter in `# TYPE` and `# HELP` has its `_total`, an info is a gauge whose
//! name ends in `_info`, and neither `# UNIT` nor `# EOF` exist.

pub(super) fn from_open_metrics(page: &str) -> String {
    let mut text = String::with_capacity(page.len());
    let mut help = "";
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            // Written with the type, on which its name depends.
            help = rest;
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            let (suffix, kind) = match kind {
                "counter" => ("_total", "counter"),
                "info" => ("_info", "gauge"),
                other => ("", other),
            };
            let words = help.split_once(' ').map_or("", |(_, words)| words);
            text.push_str(&format!("# HELP {name}{suffix} {words}\n# TYPE {name}{suffix} {kind}\n"));
        } else if !line.starts_with("# UNIT ") && line != "# EOF" {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_in_the_older_format() {
        let page = "# HELP a_seconds How long.\n# TYPE a_seconds histogram\n# UNIT a_seconds seconds\na_seconds_sum 1.0\n\
                    # HELP b All \"b\".\n# TYPE b counter\nb_total{x=\"y\"} 2\n# HELP c Version.\n# TYPE c info\nc_info{v=\"1\"} 1\n\
                    # HELP d Now.\n# TYPE d gauge\nd 3\n# EOF\n";
        let expected = "# HELP a_seconds How long.\n# TYPE a_seconds histogram\na_seconds_sum 1.0\n\
                        # HELP b_total All \"b\".\n# TYPE b_total counter\nb_total{x=\"y\"} 2\n\
                        # HELP c_info Version.\n# TYPE c_info gauge\nc_info{v=\"1\"} 1\n# HELP d Now.\n# TYPE d gauge\nd 3\n";
        assert_eq!(from_open_metrics(page), expected);
    }
}
