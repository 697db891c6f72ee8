//! A person's configuration is checked to the line, and shown with where each value comes from.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::support::{LONG, Outcome, Place, Running};

fn config(place: &Place, arguments: &[&str]) -> Outcome {
    let mut command = place.handover();
    Running::start(command.arg("config").args(arguments)).finish(LONG)
}

#[test]
fn without_a_file_everything_has_its_default() {
    let place = Place::new();
    let checked = config(&place, &["check", "--json"]).done();
    assert_eq!(
        (&checked["ok"], &checked["exists"]),
        (&true.into(), &false.into())
    );
    let shown = config(&place, &["show", "--json"]).done();
    let settings = shown["settings"].as_object().expect("settings");
    assert!(settings.len() > 8);
    assert!(
        settings
            .values()
            .all(|setting| setting["source"] == "default")
    );
    assert_eq!(settings["notify.desktop"]["value"], true);
}

#[test]
fn what_is_set_is_shown_with_its_line() {
    let mut place = Place::new();
    let elsewhere = place.path().join("c");
    place.set("XDG_CONFIG_HOME", &elsewhere);
    fs::create_dir_all(elsewhere.join("handover")).expect("a directory");
    let path = elsewhere.join("handover/config.toml");
    fs::write(&path, "[control]\n# mine\nidle = \"10m\"\n").expect("a file");
    let shown = config(&place, &["show", "--json"]).done();
    assert_eq!(shown["path"].as_str(), path.to_str());
    let idle = &shown["settings"]["control.idle"];
    assert_eq!((&idle["value"], &idle["line"]), (&"10m".into(), &3.into()));
    let text = config(&place, &["show"]).out;
    assert!(
        text.contains("idle = \"10m\"") && text.contains("# line 3"),
        "{text}"
    );
    // What is shown can be written down and is understood.
    let again = place.path().join("again.toml");
    fs::write(&again, text).expect("a file");
    let again = again.to_str().expect("a path");
    config(&place, &["check", "--json", "--file", again]).done();
}

#[test]
fn a_fault_is_shown_in_its_line() {
    let place = Place::new();
    let file = place.path().join("bad.toml");
    let path = file.to_str().expect("a path");
    fs::write(&file, "[notify]\n\ndesktop = \"no\"\n").expect("a file");
    let said = config(&place, &["check", "--file", path]);
    assert_eq!(said.code, 1, "{said:?}");
    let lines: Vec<&str> = said.err.lines().collect();
    assert!(lines[0].contains("line 3, column 11"), "{said:?}");
    assert_eq!(lines[1], "  3 | desktop = \"no\"");
    assert!(lines[2].starts_with("    |           ^^^^"), "{said:?}");
    let said = config(&place, &["check", "--json", "--file", path]);
    assert_eq!(said.refused(), "bad_params");
    let data = &said.json()["error"]["data"];
    assert_eq!(
        (&data["line"], &data["key"]),
        (&3.into(), &"notify.desktop".into())
    );
    let missing = config(
        &place,
        &["check", "--json", "--file", "/nonexistent/c.toml"],
    );
    assert_eq!(missing.refused(), "bad_params");
}

#[test]
fn a_token_file_that_cannot_be_used_is_named() {
    let place = Place::new();
    let file = place.path().join("c.toml");
    let path = file.to_str().expect("a path");
    let text = "[notify]\nurl = \"https://ntfy.example/x\"\n  token_file = \"token\" # mine\n";
    fs::write(&file, text).expect("a file");
    let said = config(&place, &["check", "--file", path]);
    assert_eq!(said.code, 1, "{said:?}");
    let token = place.path().join("token");
    let missing = format!("there is no file {}", token.display());
    assert!(said.err.contains(&missing), "{said:?}");
    assert!(said.err.contains("line 3, column 3"), "{said:?}");
    assert!(
        said.err.contains("  3 |   token_file = \"token\" # mine\n"),
        "{said:?}"
    );
    let said = config(&place, &["check", "--json", "--file", path]);
    assert_eq!(said.refused(), "bad_params");
    let key = &said.json()["error"]["data"]["key"];
    assert_eq!(key, "notify.token_file");
    // It is no reason not to look at the settings.
    config(&place, &["show", "--json", "--file", path]).done();

    fs::write(&token, "SECRET").expect("a token");
    fs::set_permissions(&token, fs::Permissions::from_mode(0o644)).expect("a mode");
    let open = config(&place, &["check", "--file", path]);
    assert!(open.err.contains("chmod 600"), "{open:?}");
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).expect("a mode");
    config(&place, &["check", "--json", "--file", path]).done();
}
