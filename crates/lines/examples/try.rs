use corelay_lines::*;
use corelay_topology::{Order, Topology};
fn main() {
    let mut args = std::env::args().skip(1);
    let machine: Machine = args.next().unwrap().parse().unwrap();
    let clients: Vec<usize> = args
        .next()
        .unwrap()
        .split(',')
        .map(|c| c.parse().unwrap())
        .collect();
    let ops: u64 = args.next().unwrap().parse().unwrap();
    let methods: Vec<Method> = match args.next() {
        Some(m) => m.split(',').map(|m| m.parse().unwrap()).collect(),
        None => Method::ALL.to_vec(),
    };
    let t = Topology::regular(machine.sockets(), machine.cores(), machine.threads());
    println!(
        "{:12} {:>4} {:>7} {:>7} {:>7} {:>7} {:>7} | srv {:>7} {:>7} mem sleeps fair",
        "method", "n", "core", "socket", "across", "moved", "claims", "moved", "claims"
    );
    for m in methods {
        for &n in &clients {
            let p = t.place(&Order::Sockets, m.servers(), n).unwrap();
            let places: Vec<usize> = p.cpus().iter().map(|c| c.unwrap()).collect();
            let start = std::time::Instant::now();
            let c = Setup {
                machine,
                places,
                operations: ops,
            }
            .count(m);
            let f = |x| c.per_operation(x);
            println!(
                "{:12} {:4} {:7.2} {:7.2} {:7.2} {:7.2} {:7.2} | srv {:7.2} {:7.2} {:.3} {:.3} {}..{} {:?}",
                m.name(),
                n,
                f(c.all.moved[0]),
                f(c.all.moved[1]),
                f(c.all.moved[2]),
                f(c.all.lines()),
                f(c.all.claims()),
                f(c.server.lines()),
                f(c.server.claims()),
                f(c.all.from_memory),
                f(c.all.sleeps),
                c.fewest,
                c.most,
                start.elapsed()
            );
        }
    }
}
