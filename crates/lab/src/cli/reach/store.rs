//! `corelay reach store`: measures the targets of the transactional store.

use super::txn::{measure, print_run, print_untargeted};
use super::{Args, print_judgements};
use crate::reach::Judgement;
use crate::reach::store::{Aborts, aborts, points};
use corelay_lab_measure::host::Host;
use corelay_lab_measure::schema::{Mode, Run};
use corelay_lab_report::exit::Exit;
use corelay_lab_report::output;
use corelay_topology::Order;

pub(super) fn run(args: &Args, host: &Host) -> Result<Exit, String> {
    let points = points()?;
    let mut rig = host.rig(&Order::default(), 2)?;
    if let Some(why) = rig.no_probe() {
        output::say(&format!("no target can be measured here: {why}\n"))?;
        return Ok(Exit::Fine);
    }
    let runs = measure(args, host, &mut rig, &points)?;
    rig.save();
    if let Some(wrong) = runs.iter().flatten().find(|run| !run.correct) {
        output::say(&format!("{}: {}\n", wrong.method, wrong.notes.join("; ")))?;
        return Ok(Exit::Wrong);
    }
    let mut missed = false;
    for (point, runs) in points.iter().zip(&runs) {
        output::say(&format!("{}\n", point.name()))?;
        let (judgements, _) = point.judge(runs, args.blocks as usize);
        // The figures of the peers are of the mode near.
        let (near, far): (Vec<Judgement>, Vec<Judgement>) = judgements
            .into_iter()
            .partition(|judgement| judgement.mode == Mode::Near);
        missed |= print_judgements(&near)?;
        far.iter()
            .try_for_each(|ratio| print_untargeted(ratio.what, ratio))?;
        for aborts in aborts(point) {
            missed |= print_aborts(&aborts, runs)?;
        }
        runs.iter().try_for_each(print_run)?;
    }
    output::say(
        "Mops are million transactions per second. stm-transfer is a yardstick: where it is slower \
         than usual, so is all else.\n",
    )?;
    Ok(match (missed, rig.is_interrupted()) {
        (_, true) => Exit::Interrupted,
        (true, false) => Exit::Wrong,
        (false, false) => Exit::Fine,
    })
}

/// Prints the share of aborted attempts. Returns whether it is larger than the peer's.
fn print_aborts(aborts: &Aborts, runs: &[Run]) -> Result<bool, String> {
    let Some(share) = aborts.share(runs) else {
        return Ok(false);
    };
    // In both modes together.
    let is_met = share <= aborts.most;
    let verdict = if is_met { "pass" } else { "MISS" };
    output::say(&format!(
        "{:28} all   <= {:<5}  {share:>21.3}  {verdict}\n",
        aborts.what, aborts.most
    ))?;
    Ok(!is_met)
}
