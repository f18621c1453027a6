//! A machine with two memory nodes, made up by an emulator: where threads go, and where their memory
//! lies.
//!
//! The emulator runs Debian's kernel and, from a file system in memory, the tests in question. This
//! checks placement; it says nothing about speed.

use super::debian;
use crate::binaries::{self, Binary, Checker, Target};
use crate::process::{self, Tally};
use crate::steps::{CANNOT_RUN, Verdict};
use crate::workspace::{self, Workspace};
use anyhow::{Context, Result, bail};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

/// Kernel, emulator, the programs that the first process needs, and the archiver of the file system.
const PACKAGES: &[&str] = &[
    "linux-image-cloud-amd64",
    "qemu-system-x86",
    "busybox-static",
    "cpio",
];

/// The machine: two nodes of two CPUs and 1 GiB each.
const MACHINE: &str = "-accel tcg,thread=multi -cpu max -m 2048 -smp 4,sockets=2,cores=2 \
    -object memory-backend-ram,id=m0,size=1G -object memory-backend-ram,id=m1,size=1G \
    -numa node,nodeid=0,cpus=0-1,memdev=m0 -numa node,nodeid=1,cpus=2-3,memdev=m1 \
    -nographic -no-reboot";

/// The tests that run there: crate, target, the tests' names.
const TESTS: &[(&str, &str, &str)] = &[
    ("literature", "makers", ""),
    ("delegate", "suite", "nodes::"),
    ("topology", "topology", ""),
];

/// An emulated machine that has not ended by then never will.
const LIMIT: Duration = Duration::from_secs(15 * 60);

/// The last line that the machine prints.
const ENDED: &str = "the machine has ended";

pub(super) fn run(workspace: &Workspace) -> Result<Verdict> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        bail!("the emulated machine is set up for Linux on x86-64 only");
    }
    let root = debian::unpacked(workspace, PACKAGES).context(CANNOT_RUN)?;
    let targets: Vec<Target> = TESTS
        .iter()
        .map(|(c, name, _)| Target::new(c, name))
        .collect();
    let built = binaries::build(
        &workspace.root,
        &workspace.target,
        Checker::Plain,
        &targets,
        Stdio::inherit(),
    )?;
    let Ok(programs) = built else {
        bail!("the tests do not build");
    };
    let home = workspace.target.join("deep").join("nodes");
    fill(&root, &home, &programs)?;

    let mut archive = process::program("sh", &home.join("files"));
    let cpio = debian::program(&root, "bin/cpio");
    archive.args([
        "-c",
        &format!("find . | {cpio} -o -H newc --quiet > ../files.cpio"),
    ]);
    debian::said(archive)?;

    let kernels = workspace::sorted(&root.join("boot"))?;
    let kernel = kernels
        .iter()
        .rfind(|path| workspace::file_name(path).starts_with("vmlinuz"));
    let mut machine = process::program("sh", &home);
    let emulator = debian::program(&root, "usr/bin/qemu-system-x86_64");
    machine.args(["-c", &format!("exec {emulator} \"$@\""), "qemu"]);
    for firmware in ["usr/share/qemu", "usr/share/seabios"] {
        machine.arg("-L").arg(root.join(firmware));
    }
    machine.args(MACHINE.split_whitespace());
    machine.args(["-append", "console=ttyS0 quiet panic=-1"]);
    machine
        .arg("-kernel")
        .arg(kernel.context("no kernel was unpacked")?);
    machine.args(["-initrd", "files.cpio"]);
    let ended = process::pass_on(machine, Some(LIMIT))?;
    // A serial line ends its lines with two characters.
    let output = ended.output.replace('\r', "");
    let tests = Tally::of(&output);
    let has_ended = ended.good() && output.contains(ENDED);
    let all_ran = output.matches("test result: ok").count() == TESTS.len();
    let note = format!("{tests}{}", process::failures(&output));
    Ok(Verdict::of(has_ended && all_ran && tests.passed > 0, note))
}

/// Fills the file system: the first process, the tests and the libraries that they load.
fn fill(root: &Path, home: &Path, programs: &[Binary]) -> Result<()> {
    let files = home.join("files");
    if files.exists() {
        fs::remove_dir_all(&files)?;
    }
    for folder in ["proc", "sys", "dev", "tmp"] {
        fs::create_dir_all(files.join(folder))?;
    }
    fs::copy(root.join("bin/busybox"), files.join("busybox"))?;
    let mut tests = String::new();
    for (program, (folder, name, filter)) in programs.iter().zip(TESTS) {
        let test = format!("{folder}-{name}");
        fs::copy(&program.program, files.join(&test))?;
        tests += &format!("/{test} {filter}\n");
        let mut list = process::program("ldd", home);
        list.arg(&program.program);
        let list = debian::said(list)?;
        for library in list.split_whitespace().filter(|word| word.starts_with('/')) {
            let copy = files.join(library.trim_start_matches('/'));
            fs::create_dir_all(copy.parent().context("a library lies in a folder")?)?;
            fs::copy(library, copy)?;
        }
    }
    let script = format!(
        "#!/busybox sh\nfor kind in proc sysfs; do /busybox mount -t $kind $kind /${{kind%fs}}; done\n\
         /busybox mount -t devtmpfs dev /dev\nexport CORELAY_NODES=2\n{tests}\
         echo {ENDED}\n/busybox poweroff -f\n"
    );
    let init = files.join("init");
    fs::write(&init, script)?;
    fs::set_permissions(&init, fs::Permissions::from_mode(0o755))?;
    Ok(())
}
