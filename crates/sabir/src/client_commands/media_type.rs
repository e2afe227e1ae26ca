//! Media types of files, by the endings of their names. For messages that say nothing better, and the other way round for
//! files that have no name.

const KNOWN: [(&str, &str); 33] = [
    ("txt", "text/plain"),
    ("log", "text/plain"),
    ("md", "text/markdown"),
    ("csv", "text/csv"),
    ("html", "text/html"),
    ("htm", "text/html"),
    ("css", "text/css"),
    ("js", "text/javascript"),
    ("py", "text/x-python"),
    ("rs", "text/x-rust"),
    ("sh", "text/x-shellscript"),
    ("diff", "text/x-diff"),
    ("patch", "text/x-diff"),
    ("json", "application/json"),
    ("jsonl", "application/x-ndjson"),
    ("xml", "application/xml"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    ("toml", "application/toml"),
    ("pdf", "application/pdf"),
    ("zip", "application/zip"),
    ("gz", "application/gzip"),
    ("tar", "application/x-tar"),
    ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("svg", "image/svg+xml"),
    ("webp", "image/webp"),
    ("mp3", "audio/mpeg"),
    ("mp4", "video/mp4"),
];

/// What a file of this name holds, as far as its ending says.
pub fn of_name(name: &str) -> &'static str {
    let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase()).unwrap_or_default();
    KNOWN.iter().find(|(known, _)| *known == ending).map_or("application/octet-stream", |(_, media_type)| media_type)
}

/// The ending for files of this type, with its dot; empty if none is known.
pub fn ending(media_type: &str) -> &'static str {
    let bare = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match bare.as_str() {
        "text/plain" => ".txt",
        "text/markdown" => ".md",
        "text/csv" => ".csv",
        "text/html" => ".html",
        "text/x-diff" => ".diff",
        "application/json" => ".json",
        "application/pdf" => ".pdf",
        "application/zip" => ".zip",
        "image/png" => ".png",
        "image/jpeg" => ".jpg",
        "image/gif" => ".gif",
        "image/svg+xml" => ".svg",
        "image/webp" => ".webp",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_and_types_fit_together() {
        for (name, expected) in
            [("a.TXT", "text/plain"), ("x.tar.gz", "application/gzip"), ("Makefile", "application/octet-stream")]
        {
            assert_eq!(of_name(name), expected);
        }
        for (_, media_type) in KNOWN {
            let ending = ending(media_type);
            assert!(ending.is_empty() || of_name(&format!("x{ending}")) == media_type, "{media_type}");
        }
    }
}
