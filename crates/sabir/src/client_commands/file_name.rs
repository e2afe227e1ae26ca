//! Names for files that strangers name. A name never leads out of its folder, never hides the file, and never means
//! something to a shell or a terminal.

/// What file systems take, less room for a number.
const LONGEST: usize = 200;

/// A harmless name that resembles `name`; without one it is `artifact`, with an ending for the media type.
pub fn safe_name(name: Option<&str>, media_type: Option<&str>) -> String {
    let last = name.unwrap_or_default().rsplit(['/', '\\']).next().unwrap_or_default();
    let letter = |letter: char| match letter {
        letter if letter.is_alphanumeric() || " ._-+=@,()[]".contains(letter) => letter,
        _ => '_',
    };
    let name: String = last.chars().map(letter).collect();
    let name = name.trim_end_matches(['.', ' ']).trim_start_matches(' ');
    // A file that begins with a dot is hidden and may be somebody's settings; one with a hyphen is taken for a flag.
    let name = match name.strip_prefix(['.', '-']) {
        Some(rest) => format!("_{rest}"),
        None => name.to_owned(),
    };
    match name.trim_matches('_').is_empty() {
        true => format!("artifact{}", ending(media_type)),
        false => shortened(&name),
    }
}

/// `report.pdf` the second time: `report-2.pdf`.
pub fn numbered(name: &str, number: usize) -> String {
    match name.rsplit_once('.') {
        _ if number < 2 => name.to_owned(),
        Some((stem, ending)) if !stem.is_empty() => format!("{stem}-{number}.{ending}"),
        _ => format!("{name}-{number}"),
    }
}

/// Cuts the middle, so that the ending stays.
fn shortened(name: &str) -> String {
    if name.len() <= LONGEST {
        return name.to_owned();
    }
    let (stem, ending) = match name.rsplit_once('.') {
        Some((stem, ending)) if ending.len() <= 20 => (stem, format!(".{ending}")),
        _ => (name, String::new()),
    };
    let room = LONGEST - ending.len();
    let end = (0..=room).rev().find(|end| stem.is_char_boundary(*end)).unwrap_or(0);
    format!("{}{ending}", &stem[..end])
}

fn ending(media_type: Option<&str>) -> &'static str {
    super::media_type::ending(media_type.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leads_out_of_the_folder() {
        for (name, media_type, expected) in [
            (Some("report.pdf"), None, "report.pdf"),
            (Some("../../etc/passwd"), None, "passwd"),
            (Some("/etc/passwd"), None, "passwd"),
            (Some("..\\..\\boot.ini"), None, "boot.ini"),
            (Some("C:\\x\\y.txt"), None, "y.txt"),
            (Some("a/"), None, "artifact"),
            (Some(".."), None, "artifact"),
            (Some("."), Some("application/pdf"), "artifact.pdf"),
            (Some(""), Some("text/plain; charset=utf-8"), "artifact.txt"),
            (None, Some("application/x-strange"), "artifact"),
            (Some(".bashrc"), None, "_bashrc"),
            (Some("-rf"), None, "_rf"),
            (Some("a\0b\n\u{1b}[2J.txt"), None, "a_b__[2J.txt"),
            (Some("$(rm -r x).sh"), None, "_(rm -r x).sh"),
            (Some("a\u{202e}fdp.exe"), None, "a_fdp.exe"),
            (Some("übung 1.txt"), None, "übung 1.txt"),
            (Some("  x . "), None, "x"),
            (Some("///"), None, "artifact"),
        ] {
            assert_eq!(safe_name(name, media_type), expected, "{name:?}");
        }
        let long = safe_name(Some(&format!("{}.txt", "é".repeat(300))), None);
        assert!(long.len() <= LONGEST && long.ends_with("é.txt"), "{long}");
    }

    #[test]
    fn a_name_that_is_taken_gets_a_number() {
        for (name, number, expected) in
            [("a.txt", 1, "a.txt"), ("a.txt", 2, "a-2.txt"), ("a.tar.gz", 3, "a.tar-3.gz"), ("a", 2, "a-2")]
        {
            assert_eq!(numbered(name, number), expected);
        }
    }
}
