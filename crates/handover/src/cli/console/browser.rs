//! Opening the link in a browser, without the secret on a command line that others can read.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use handover_protocol::server::atomic_file;

/// A page on disk that goes on to the link; removed when dropped.
#[derive(Debug)]
pub struct Page(PathBuf);

impl Drop for Page {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Opens `url` in the desktop's browser. The page in `directory`, which is private, must live until the
/// browser has read it.
///
/// # Errors
/// The page cannot be written, or there is no `xdg-open`.
pub fn open(url: &str, directory: &Path) -> io::Result<Page> {
    let page = Page::write(url, directory)?;
    let mut opener = Command::new("xdg-open")
        .arg(&page.0)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    // It may be the browser itself, for as long as that runs.
    std::thread::spawn(move || opener.wait());
    Ok(page)
}

impl Page {
    fn write(url: &str, directory: &Path) -> io::Result<Self> {
        let path = directory.join(format!("open-{}.html", std::process::id()));
        // Our own link: letters, digits and what stands between them in an address.
        let html = format!(
            "<!doctype html>\n<meta charset=\"utf-8\">\n\
             <meta name=\"referrer\" content=\"no-referrer\">\n\
             <meta http-equiv=\"refresh\" content=\"0; url={url}\">\n<title>Handover</title>\n"
        );
        atomic_file::replace_volatile(&path, html.as_bytes())?;
        Ok(Self(path))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_page_is_private_and_goes_away() {
        let dir = tempfile::tempdir().unwrap();
        let page = Page::write("http://127.0.0.1:1/open/00", dir.path()).unwrap();
        let path = page.0.clone();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        drop(page);
        assert!(!path.exists());
    }
}
