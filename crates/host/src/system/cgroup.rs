//! A control group for one tree of processes, where a part of the kernel's one hierarchy (cgroup v2) is
//! this user's to divide: nothing leaves it by forking, and it can be killed as a whole. Where no part is,
//! or the kernel knows no `cgroup.kill`, there is none, and nothing depends on it.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::process::ProcessIdentity;

/// Where the hierarchy may be mounted: alone, or beside the older ones.
const MOUNTS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

/// The group of one tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cgroup(PathBuf);

impl Cgroup {
    /// Makes a group for the tree of this process, below its present one, and moves the process there.
    /// None where that is not allowed.
    pub fn enter(own: ProcessIdentity) -> Option<Self> {
        let membership = std::fs::read_to_string("/proc/self/cgroup").ok()?;
        MOUNTS.iter().find_map(|mount| {
            let group = Self::make(Path::new(mount), &membership, own)?;
            match write(&group.0.join("cgroup.procs"), &own.pid.to_string()) {
                Ok(()) => Some(group),
                Err(_) => {
                    group.remove();
                    None
                }
            }
        })
    }

    /// The group that `root` has made for its tree; none if it has made none.
    pub fn of(root: ProcessIdentity) -> Option<Self> {
        let membership = std::fs::read_to_string(format!("/proc/{}/cgroup", root.pid)).ok()?;
        MOUNTS.iter().find_map(|mount| {
            let dir = directory(Path::new(mount), &membership)?;
            (dir.file_name()? == name(root).as_str()).then_some(Self(dir))
        })
    }

    /// The group that `root`, which has ended, had made for its tree, if it was in the same group as
    /// this process before.
    pub fn of_ended(root: ProcessIdentity) -> Option<Self> {
        let membership = std::fs::read_to_string("/proc/self/cgroup").ok()?;
        MOUNTS
            .iter()
            .filter_map(|mount| directory(Path::new(mount), &membership))
            .map(|own| Self(own.join(name(root))))
            .find(|group| group.0.exists())
    }

    /// Whose tree's group a process is in, if in any. What it has no right to leave it stays in,
    /// whoever its parent is.
    pub fn root_around(pid: u32) -> Option<ProcessIdentity> {
        root_in(&std::fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?)
    }

    fn make(mount: &Path, membership: &str, root: ProcessIdentity) -> Option<Self> {
        let parent = directory(mount, membership)?;
        // Moving a process takes the right to write to the parent's list, too.
        access(parent.join("cgroup.procs"), Access::WRITE_OK).ok()?;
        sweep(&parent);
        let group = Self(parent.join(name(root)));
        std::fs::create_dir(&group.0).ok()?;
        if group.0.join("cgroup.kill").exists() {
            return Some(group);
        }
        group.remove();
        None
    }

    /// Kills every process of the group.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn kill(&self) -> io::Result<()> {
        write(&self.0.join("cgroup.kill"), "1")
    }

    /// Moves this process back to where it was and removes the group, if nothing else is in it.
    pub fn leave(&self) {
        if let Some(parent) = self.0.parent() {
            // If it cannot leave, an empty group stays until its parent ends.
            let _ = write(
                &parent.join("cgroup.procs"),
                &std::process::id().to_string(),
            );
        }
        self.remove();
    }

    /// Removes the group, if nothing is in it.
    pub fn remove(&self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// No other process has this name for its group, in this boot.
fn name(root: ProcessIdentity) -> String {
    format!("handover-{}-{}", root.pid, root.start_ticks)
}

/// Whose group has this name.
fn root_of(name: &str) -> Option<ProcessIdentity> {
    let (pid, start_ticks) = name.strip_prefix("handover-")?.split_once('-')?;
    Some(ProcessIdentity {
        pid: pid.parse().ok()?,
        start_ticks: start_ticks.parse().ok()?,
    })
}

/// The innermost root in a process's `/proc/PID/cgroup`.
fn root_in(membership: &str) -> Option<ProcessIdentity> {
    let mut paths = membership.lines();
    let path = paths.find_map(|line| line.strip_prefix("0::/"))?;
    path.trim_end_matches(" (deleted)")
        .rsplit('/')
        .find_map(root_of)
}

/// Removes the empty groups of those that were killed together with their host.
fn sweep(parent: &Path) {
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        let root = entry.file_name().to_str().and_then(root_of);
        if root.is_some_and(|root| !root.is_alive()) {
            // It fails for one that is not empty.
            let _ = std::fs::remove_dir(entry.path());
        }
    }
}

/// The directory of a process's group, from its `/proc/PID/cgroup`, if the hierarchy is mounted there.
fn directory(mount: &Path, membership: &str) -> Option<PathBuf> {
    // Only this hierarchy has the list of controllers.
    if !mount.join("cgroup.controllers").exists() {
        return None;
    }
    let path = membership
        .lines()
        .find_map(|line| line.strip_prefix("0::/"))?;
    // That of a process outside of our namespace, or one that is no more.
    if path.split('/').any(|part| part == "..") || path.ends_with(" (deleted)") {
        return None;
    }
    Some(mount.join(path))
}

/// Writes to a file of the kernel's, which is there already.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut file = std::fs::File::options().write(true).open(path)?;
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: ProcessIdentity = ProcessIdentity {
        pid: 12,
        start_ticks: 345,
    };

    /// Something that looks like a hierarchy with one group.
    fn fake() -> tempfile::TempDir {
        let mount = tempfile::tempdir().unwrap();
        std::fs::write(mount.path().join("cgroup.controllers"), "").unwrap();
        let own = mount.path().join("app.slice/x.scope");
        std::fs::create_dir_all(&own).unwrap();
        std::fs::write(own.join("cgroup.procs"), "").unwrap();
        mount
    }

    #[test]
    fn the_directory_is_that_of_the_one_hierarchy() {
        let mount = fake();
        let at = |membership| directory(mount.path(), membership);
        let hybrid = "9:name=systemd:/a\n4:memory:/b\n0::/app.slice/x.scope\n";
        assert_eq!(at(hybrid), Some(mount.path().join("app.slice/x.scope")));
        assert_eq!(at("0::/\n"), Some(mount.path().join("")));
        for none in [
            "4:memory:/b\n",
            "",
            "0::/../../other\n",
            "0::/x (deleted)\n",
        ] {
            assert_eq!(at(none), None, "{none}");
        }
        let elsewhere = tempfile::tempdir().unwrap();
        assert_eq!(directory(elsewhere.path(), hybrid), None);
    }

    #[test]
    fn a_member_names_its_root() {
        let group = name(ROOT);
        for inside in [
            format!("0::/app.slice/{group}\n"),
            format!("4:memory:/b\n0::/{group}/of/its/own\n"),
            format!("0::/handover-1-2/{group} (deleted)\n"),
        ] {
            assert_eq!(root_in(&inside), Some(ROOT), "{inside}");
        }
        for outside in [
            "0::/\n",
            "",
            "4:memory:/handover-12-345\n",
            "0::/handover-x/y\n",
        ] {
            assert_eq!(root_in(outside), None, "{outside}");
        }
    }

    #[test]
    fn where_it_cannot_be_killed_none_stays() {
        let mount = fake();
        // The kernel fills a new directory; this one stays empty.
        assert_eq!(
            Cgroup::make(mount.path(), "0::/app.slice/x.scope\n", ROOT),
            None
        );
        let own = mount.path().join("app.slice/x.scope");
        assert_eq!(std::fs::read_dir(&own).unwrap().count(), 1);
        assert_eq!(Cgroup::make(mount.path(), "0::/not/there\n", ROOT), None);
    }

    #[test]
    fn empty_groups_of_the_dead_are_swept() {
        let parent = tempfile::tempdir().unwrap();
        let own = ProcessIdentity::own().unwrap();
        let dead = ProcessIdentity {
            start_ticks: own.start_ticks + 1,
            ..own
        };
        let full = ProcessIdentity {
            start_ticks: own.start_ticks + 2,
            ..own
        };
        let at = |name: &str| parent.path().join(name);
        let names = [&name(own), &name(dead), &name(full), "handover-x"].map(at);
        for dir in &names {
            std::fs::create_dir(dir).unwrap();
        }
        std::fs::write(names[2].join("a"), "").unwrap();
        sweep(parent.path());
        let left = names.map(|dir| dir.exists());
        assert_eq!(left, [true, false, true, true]);
    }

    #[test]
    fn killing_and_leaving_write_what_the_kernel_reads() {
        let mount = fake();
        let own = mount.path().join("app.slice/x.scope");
        let group = Cgroup(own.join(name(ROOT)));
        assert!(group.0.ends_with("handover-12-345"));
        std::fs::create_dir(&group.0).unwrap();
        group.kill().unwrap_err();
        std::fs::write(group.0.join("cgroup.kill"), "").unwrap();
        group.kill().unwrap();
        let killed = std::fs::read_to_string(group.0.join("cgroup.kill"));
        assert_eq!(killed.unwrap(), "1");
        group.leave();
        let moved = std::fs::read_to_string(own.join("cgroup.procs"));
        assert_eq!(moved.unwrap(), std::process::id().to_string());
    }
}
