//! Makes the web console's app part of the program, if it has been built (`make console`).

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use flate2::Compression;
use flate2::write::GzEncoder;

fn main() -> io::Result<()> {
    let app = Path::new("../../console/dist");
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?);
    let mut files = Vec::new();
    if app.is_dir() {
        println!("cargo::rerun-if-changed={}", app.display());
        gather(app, &mut files)?;
    } else {
        // What is not there would count as changed at every build.
        println!("cargo::rerun-if-changed=../../console");
    }
    files.sort();
    let mut table = String::from("static APP: &[Asset] = &[\n");
    for (index, file) in files.iter().enumerate() {
        // Maps are for those who have the source.
        if file.extension().is_some_and(|extension| extension == "map") {
            continue;
        }
        let compressed = out.join(format!("console-{index}.gz"));
        let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
        gzip.write_all(&fs::read(file)?)?;
        fs::write(&compressed, gzip.finish()?)?;
        let path = file.strip_prefix(app).map_err(io::Error::other)?;
        let path = path.to_str().ok_or(io::ErrorKind::InvalidData)?;
        writeln!(
            table,
            "    Asset {{ path: {:?}, kind: {:?}, gzip: include_bytes!({compressed:?}) }},",
            format!("/{path}"),
            kind(path),
        )
        .map_err(io::Error::other)?;
    }
    table.push_str("];\n");
    fs::write(out.join("console.rs"), table)
}

fn gather(directory: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            gather(&entry.path(), files)?;
        } else {
            files.push(entry.path());
        }
    }
    Ok(())
}

/// The media type of a file of the app.
fn kind(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, extension)| extension) {
        Some("html") => "text/html; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("json") => "application/json",
        Some("webmanifest") => "application/manifest+json",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("ico") => "image/x-icon",
        Some("woff2") => "font/woff2",
        Some("wasm") => "application/wasm",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}
