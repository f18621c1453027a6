//! Model, kernel, hypervisor and clock source from files.

use crate::tree::Tree;
use corelay_topology::Facts;

const CLOCK: &str = "sys/devices/system/clocksource/clocksource0";

fn tree(cpuinfo: &str) -> Tree {
    let tree = Tree::empty();
    tree.line("proc/cpuinfo", cpuinfo);
    tree.line("proc/sys/kernel/osrelease", "6.1.0-test");
    tree.line(&format!("{CLOCK}/current_clocksource"), "tsc");
    tree.line(
        &format!("{CLOCK}/available_clocksource"),
        "tsc hpet acpi_pm ",
    );
    tree
}

fn model(cpuinfo: &str) -> Option<String> {
    Facts::read(tree(cpuinfo).root()).model
}

#[test]
fn all_facts_are_read() {
    let tree =
        tree("processor\t: 0\nmodel\t\t: 85\nmodel name\t: A Model @ 2.6GHz\nflags\t\t: fpu tsc\n");
    let facts = Facts::read(tree.root());
    assert_eq!(facts.model.as_deref(), Some("A Model @ 2.6GHz"));
    assert_eq!(facts.kernel.as_deref(), Some("6.1.0-test"));
    assert_eq!(facts.clock_source.as_deref(), Some("tsc"));
    assert_eq!(facts.clock_sources, ["tsc", "hpet", "acpi_pm"]);
    assert_eq!(facts.hypervisor, None);
    assert_eq!(facts.unavailable, [""; 0]);
}

#[test]
fn models_of_other_architectures() {
    let arm = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n";
    assert_eq!(
        model(arm).as_deref(),
        Some("Arm implementer 0x41, part 0xd40")
    );
    assert_eq!(
        model("processor\t: 0\ncpu\t\t: POWER9, altivec supported").as_deref(),
        Some("POWER9, altivec supported")
    );
    assert_eq!(
        model("Model Name\t\t: Loongson-3A5000").as_deref(),
        Some("Loongson-3A5000")
    );
    assert_eq!(model("garbage"), None);
}

#[test]
fn the_board_where_the_processor_has_no_name() {
    let tree = tree("processor\t: 0\nhart\t: 1");
    tree.write(
        "sys/firmware/devicetree/base/model",
        "StarFive VisionFive 2\0",
    );
    assert_eq!(
        Facts::read(tree.root()).model.as_deref(),
        Some("StarFive VisionFive 2")
    );
}

#[test]
fn hypervisors() {
    let flagged = tree("flags\t: fpu hypervisor tsc");
    assert_eq!(
        Facts::read(flagged.root()).hypervisor.as_deref(),
        Some("unknown")
    );
    flagged.line("sys/class/dmi/id/sys_vendor", "Amazon EC2");
    assert_eq!(
        Facts::read(flagged.root()).hypervisor.as_deref(),
        Some("Amazon EC2")
    );
    flagged.line("sys/hypervisor/type", "xen");
    assert_eq!(
        Facts::read(flagged.root()).hypervisor.as_deref(),
        Some("xen")
    );

    let plain = tree("CPU part\t: 0xd40");
    plain.line("sys/class/dmi/id/sys_vendor", "QEMU");
    assert_eq!(
        Facts::read(plain.root()).hypervisor.as_deref(),
        Some("QEMU")
    );
    plain.line("sys/class/dmi/id/sys_vendor", "Dell Inc.");
    assert_eq!(Facts::read(plain.root()).hypervisor, None);
}

#[test]
fn missing_facts_are_reported() {
    let expected = [
        "CPU model: proc/cpuinfo is missing",
        "kernel release: proc/sys/kernel/osrelease is missing",
        "clock source: sys/devices/system/clocksource/clocksource0/current_clocksource is missing",
    ];
    assert_eq!(Facts::read(Tree::empty().root()).unavailable, expected);
    let silent = Facts::read(tree("processor\t: 0").root());
    assert_eq!(
        silent.unavailable,
        ["CPU model: proc/cpuinfo does not name one"]
    );
}
