//! Tests of the verdict: wins, losses, and cases that cannot be judged.

use super::*;

fn is_ours(name: &str) -> bool {
    crate::method::find(name).is_some_and(|m| m.style.is_ours())
}

/// The sentences of the answer, without line breaks.
fn answer(verdict: &crate::Verdict) -> String {
    let sentences = verdict.answers.iter().flat_map(|answer| &answer.sentences);
    sentences
        .cloned()
        .collect::<Vec<_>>()
        .join(" ")
        .replace('\u{a0}', " ")
}

#[test]
fn a_loss_of_delegation_is_reported() {
    let verdict = verdict(&Recipe::default().make());
    let section = &verdict.sections[0];
    let waiting: Vec<_> = section
        .findings
        .iter()
        .filter(|f| f.comparison == Comparison::Waiting)
        .collect();
    assert!(!waiting.is_empty() && waiting.iter().all(|f| f.standing() == Standing::Loses));
    assert!(
        waiting.iter().all(|f| f.rival == "ttas"),
        "the strongest rival is named"
    );
    let few = waiting
        .iter()
        .find(|f| f.mode == Mode::Near && f.level.vars == [1, 2])
        .unwrap();
    let truth = 13.5 / 60.0;
    assert!(few.ratio.low < few.ratio.ratio && few.ratio.ratio < few.ratio.high);
    assert!((few.ratio.ratio / truth).ln().abs() < 0.5, "{few:?}");
    let told = answer(&verdict);
    let hot = "On 1–2 variables use `atomic` (3.5 ×) if one instruction does it, otherwise `ttas`, \
               1.6 × as fast as a `mutex`. ";
    let later = "Delegation pays only where answers may come later: on 1–2 variables `trust-then` does \
                 2.4 × as much as the best lock or channel, `ttas`";
    assert!(told.starts_with(hot) && told.contains(later), "{told}");
    assert!(
        told.ends_with(" On 8–1,048,576 variables use `ttas`."),
        "{told}"
    );
    assert!(section.why.iter().any(|w| w.starts_with("One client:")));
    assert!(section.why.iter().any(|w| w.starts_with("No contention:")));
}

#[test]
fn a_win_of_delegation_is_reported() {
    let mops = |m: &str| {
        if m == "trust" {
            (500.0, 500.0)
        } else {
            small_machine(m)
        }
    };
    let verdict = verdict(
        &Recipe {
            mops,
            modes: vec![Mode::Near],
            ..Recipe::default()
        }
        .make(),
    );
    let section = &verdict.sections[0];
    let waiting = section
        .findings
        .iter()
        .filter(|f| f.comparison == Comparison::Waiting);
    assert!(waiting.clone().count() > 0 && waiting.clone().all(|f| f.standing() == Standing::Wins));
    assert!(answer(&verdict).contains("Delegation pays: on "));
    assert!(
        !section.why.iter().any(|w| w.starts_with("One client:")),
        "an explanation of a loss that is none"
    );
    assert!(
        section
            .advice
            .iter()
            .all(|a| a.lines(Need::AnswerNow) == ["`trust`"])
    );
}

#[test]
fn flat_teams_are_ours_and_the_one_that_wins_is_named() {
    // `ttas` does 60 to 190: where threads meet, more than trust-then and less than the flat
    // team.
    let results = |flat: fn(u64) -> f64, then: fn(u64) -> f64| {
        let mut results = Recipe {
            modes: vec![Mode::Near],
            vars: vec![1, 64, 512, 4096],
            methods: vec!["ttas", "tokio", "trust", "trust-then", "flat-adaptive"],
            ..Recipe::default()
        }
        .make();
        for run in &mut results.runs {
            let mops = match (run.method.as_str(), run.params.vars) {
                ("flat-adaptive", vars) => flat(vars),
                ("trust-then", vars) => then(vars),
                _ => continue,
            };
            for (i, sample) in run.samples.iter_mut().enumerate() {
                sample.mops = mops * (1.0 + 0.001 * i as f64);
            }
            *run = summed_up(run.clone());
        }
        verdict(&results)
    };
    // The level of many variables begins at 64, where the flat team alone wins.
    let flat = |vars: u64| if vars == 64 { 400.0 } else { 20.0 };
    let told = results(flat, |_| 40.0);
    let only = "Delegation pays only where answers may come later: on 64 variables `flat-adaptive` does \
                2.1 × as much as the best lock or channel, `ttas`";
    assert!(answer(&told).contains(only), "{}", answer(&told));
    let text = told.to_string();
    assert!(text.contains("flat-adaptive 2.1\u{a0}× ttas"), "{text}");
    assert!(text.contains("many (512–4,096)"), "{text}");
    // The advice is divided at the same points as the findings.
    let advice = told.sections.iter().flat_map(|s| &s.advice);
    let later = advice.map(|a| (a.level.to_string(), a.lines(Need::AnswerLater).join("; ")));
    let expected = [
        ("few (1)", "`ttas`"),
        ("many (64)", "`flat-adaptive`"),
        ("many (512–4,096)", "`ttas`"),
    ];
    let expected = expected.map(|(level, what)| (level.to_owned(), what.to_owned()));
    assert_eq!(later.collect::<Vec<_>>(), expected);

    let then = |vars: u64| if vars == 1 { 30.0 } else { 900.0 };
    let told = results(|_| 600.0, then);
    let first = "on 1 variable `flat-adaptive` does ";
    assert!(answer(&told).contains(first), "{}", answer(&told));
    let told = results(|_| 600.0, |_| 30.0);
    assert!(answer(&told).contains(first), "{}", answer(&told));
}

#[test]
fn a_tie_is_too_close_to_call() {
    let mops = |m: &str| match m {
        "trust" | "ttas" => (50.0, 50.0),
        m => (small_machine(m).0 / 10.0, small_machine(m).1 / 10.0),
    };
    let recipe = Recipe {
        mops,
        modes: vec![Mode::Near],
        noise: 0.2,
        ..Recipe::default()
    };
    let verdict = verdict(&recipe.make());
    let section = &verdict.sections[0];
    let close = section
        .findings
        .iter()
        .filter(|f| f.comparison == Comparison::Waiting && f.standing() == Standing::TooClose);
    assert!(close.count() > 0, "{:?}", section.findings);
    assert!(verdict.to_string().contains("Too close to call"));
    // A method that is ahead by chance divides no level.
    let many: Vec<_> = section
        .findings
        .iter()
        .filter(|f| f.level.kind == Kind::Many)
        .collect();
    let waiting = many.iter().filter(|f| f.comparison == Comparison::Waiting);
    assert_eq!(waiting.count(), 1, "{many:?}");
    let advice = section
        .advice
        .iter()
        .map(|a| a.lines(Need::AnswerNow).join("; "))
        .collect::<Vec<_>>();
    assert!(
        advice
            .iter()
            .any(|a| a == "`trust` or `ttas`" || a == "`ttas` or `trust`"),
        "{advice:?}"
    );
}

#[test]
fn like_is_compared_with_like() {
    for Case { name, verdict, .. } in CASES.iter() {
        for finding in verdict.sections.iter().flat_map(|s| &s.findings) {
            let later = crate::method::form(&finding.rival) == Some(crate::method::Form::Later);
            assert_eq!(
                later,
                finding.comparison == Comparison::Later,
                "{name}: {finding:?}"
            );
            let ours = is_ours;
            assert!(
                ours(&finding.ours) && !ours(&finding.rival),
                "{name}: delegation is no rival of itself"
            );
            let crossed = finding.comparison.title().starts_with("Not like with like");
            let same = matches!(finding.comparison, Comparison::Waiting | Comparison::Later);
            assert_ne!(crossed, same);
        }
    }
}

#[test]
fn a_mode_that_did_not_occur_is_not_seen() {
    let results = Recipe {
        modes: vec![Mode::Near],
        ..Recipe::default()
    }
    .make();
    let told = verdict(&results);
    assert!(
        told.sections[0]
            .notes
            .iter()
            .any(|n| n.starts_with("Far: not seen."))
    );
    assert!(
        told.sections[0]
            .findings
            .iter()
            .all(|f| f.mode == Mode::Near)
    );
    assert!(html(&results).contains("far: not seen in this run"));
    let both = verdict(&Recipe::default().make());
    assert!(!both.to_string().contains("not seen"));
}

#[test]
fn a_mode_that_was_hardly_seen_has_figures_but_no_picture() {
    let mut results = Recipe::default().make();
    for run in &mut results.runs {
        let mut far = 0;
        run.samples.retain(|s| {
            far += usize::from(s.mode == Mode::Far);
            s.mode != Mode::Far || far <= 2
        });
        *run = summed_up(run.clone());
    }
    let page = html(&results);
    assert!(
        page.contains("far: seen too rarely for a picture") && !page.contains("· far (round trip")
    );
    assert!(page.contains("near (round trip"));
    assert!(
        verdict(&results)
            .to_string()
            .contains("far have fewer than 5 samples")
    );
}

#[test]
fn without_delegation_the_others_are_still_advised_on() {
    let methods = vec!["atomic", "mutex", "ttas"];
    let told = verdict(
        &Recipe {
            methods,
            ..Recipe::default()
        }
        .make(),
    );
    let told_so = "On 1–1,048,576 variables use `atomic` (2.8 ×) if one instruction does it, otherwise \
                   `ttas`, 1.4 × as fast as a `mutex`.";
    assert_eq!(answer(&told), told_so);
    assert!(
        told.sections[0]
            .advice
            .iter()
            .all(|a| a.lines(Need::AnswerNow) == ["`ttas`"])
    );
}

/// The words that say where, and the clause, without code marks.
fn elsewhere(results: &Results) -> Vec<(String, String)> {
    let verdict = verdict(results);
    assert_eq!(verdict.answers.len(), 1);
    let plain = |text: &str| text.replace('`', "").replace('\u{a0}', " ");
    let all = verdict.answers[0].elsewhere.iter();
    all.map(|(at, what)| (plain(at), plain(what))).collect()
}

#[test]
fn async_code_gets_the_cheaper_of_a_lock_and_tasks() {
    let methods = || vec!["mutex", "ttas", "channel", "trust", "trust-async"];
    let of = |mops| {
        let methods = methods();
        elsewhere(
            &Recipe {
                methods,
                mops,
                ..Recipe::default()
            }
            .make(),
        )
    };
    let [(at, lock)] = &of(small_machine)[..] else {
        panic!("one place")
    };
    assert_eq!(at, "async code");
    assert!(
        lock.starts_with("ttas, not held across any .await"),
        "{lock}"
    );
    let [(_, tasks)] = &of(|method| match method {
        "trust-async" => (600.0, 600.0),
        // Whoever waits for another thread is no lock, however fast.
        "channel" | "trust" => (900.0, 900.0),
        other => small_machine(other),
    })[..] else {
        panic!("one place")
    };
    assert!(
        tasks.starts_with("trust-async: an operation takes"),
        "{tasks}"
    );
    assert!(tasks.contains("by ttas"), "{tasks}");
    let none = vec!["mutex", "ttas"];
    assert!(
        elsewhere(
            &Recipe {
                methods: none,
                ..Recipe::default()
            }
            .make()
        )
        .is_empty()
    );
}

#[test]
fn a_map_beside_fetch_add_is_a_clause_of_its_answer() {
    let beside = |mops| {
        let mut both = Recipe::default().make();
        let methods = vec!["mutex", "ttas", "scc", "trust-then", "trust"];
        let vars = vec![1];
        let mut map = Recipe {
            methods,
            vars,
            mops,
            ..Recipe::default()
        }
        .make();
        for run in &mut map.runs {
            run.workload = "hash".to_owned();
            run.params.extra.size = Some(Size::Keys(100_000));
            run.params.extra.updates = Some(30);
        }
        both.runs.extend(map.runs);
        elsewhere(&both).remove(0)
    };
    let fast = |method: &str| match method {
        "scc" => (300.0, 300.0),
        other => small_machine(other),
    };
    let (at, clause) = beside(fast);
    assert_eq!(at, "map of 100,000 keys, 30 % updates");
    assert!(
        clause.starts_with("scc, 9.") && clause.contains(", because threads"),
        "{clause}"
    );
    let slow = |method: &str| match method {
        "mutex" => (500.0, 500.0),
        _ => (10.0, 10.0),
    };
    assert!(
        beside(slow).1.starts_with("a plain mutex"),
        "{}",
        beside(slow).1
    );
    let later = |method: &str| match method {
        "trust-then" => (500.0, 500.0),
        other => small_machine(other),
    };
    assert!(
        beside(later).1.contains("answer later, trust-then ("),
        "{}",
        beside(later).1
    );
}

#[test]
fn modes_are_never_mixed() {
    // Delegation has only far samples and locks only near ones, so nothing can be compared.
    let mut results = Recipe::default().make();
    for run in &mut results.runs {
        let keep = if is_ours(&run.method) {
            Mode::Far
        } else {
            Mode::Near
        };
        run.samples.retain(|s| s.mode == keep);
        *run = summed_up(run.clone());
    }
    let verdict = verdict(&results);
    assert!(verdict.sections[0].findings.is_empty());
    assert!(
        !answer(&verdict).contains("Delegation"),
        "{}",
        answer(&verdict)
    );
}

#[test]
fn one_cpu_is_reported_and_not_judged() {
    let told = verdict(&one_cpu());
    assert!(answer(&told).starts_with("One CPU"));
    assert!(
        told.sections
            .iter()
            .all(|s| s.findings.is_empty() && s.advice.is_empty())
    );
    assert!(
        html(&one_cpu()).contains("<svg class=\"plot\""),
        "figures are drawn all the same"
    );
    assert!(
        !html(&one_cpu()).contains("class=\"shade\""),
        "threads that take turns never meet"
    );
}

#[test]
fn empty_results_are_reported() {
    let nothing = Results {
        runs: Vec::new(),
        ..Recipe::default().make()
    };
    assert!(
        verdict(&nothing)
            .to_string()
            .starts_with("Nothing was measured")
    );
}

#[test]
fn too_few_samples_are_drawn_but_not_compared() {
    let results = Recipe {
        samples: 2,
        ..Recipe::default()
    }
    .make();
    let told = verdict(&results);
    assert!(told.sections[0].findings.is_empty());
    assert!(told.to_string().contains("fewer than 5 samples"));
    assert!(html(&results).contains("class=\"line\""));
}

#[test]
fn an_interrupted_run_names_the_missing_points() {
    let told = verdict(&partial());
    assert!(told.to_string().contains("Incomplete:"));
    assert!(
        !told.sections[0].findings.is_empty(),
        "what is there is judged"
    );
    assert!(
        !verdict(&Recipe::default().make())
            .to_string()
            .contains("Incomplete:")
    );
}

#[test]
fn omissions_are_reported_on_the_terminal_and_on_the_page() {
    let mut results = Recipe::default().make();
    let sentence = "tokio under load: the time was over before its first sample";
    results.machine.unavailable.push(sentence.into());
    assert!(verdict(&results).to_string().contains(sentence));
    assert!(html(&results).contains(sentence));
}

#[test]
fn unknown_methods_are_drawn_and_not_judged() {
    let results = unknown_methods();
    let told = verdict(&results);
    assert!(
        told.notes
            .iter()
            .any(|n| n.contains("`h-synch`") && n.contains("not judged"))
    );
    assert_eq!(
        told.sections.len(),
        2,
        "an unknown workload has its own section"
    );
    let findings = told.sections.iter().flat_map(|s| &s.findings);
    assert!(
        findings
            .clone()
            .all(|f| f.rival != "rcl" && f.rival != "psim")
    );
    let page = html(&results);
    for line in [
        "h-synch</text>",
        "psim</text>",
        "trust-then, window 4</text>",
    ] {
        assert!(page.contains(line), "{line}");
    }
}

#[test]
fn wrong_results_have_no_figure() {
    let mut results = Recipe::default().make();
    for run in results.runs.iter_mut().filter(|r| r.method == "ttas") {
        run.correct = false;
    }
    let told = verdict(&results);
    assert!(
        told.notes
            .iter()
            .any(|n| n.contains("wrong result") && n.contains("`ttas`"))
    );
    assert!(told.sections[0].findings.iter().all(|f| f.rival != "ttas"));
    let page = html(&results);
    assert!(page.contains("wrong result: no figure"));
    assert!(
        !page.contains(">ttas</text>"),
        "a wrong method is not drawn"
    );

    results.runs.iter_mut().for_each(|r| r.correct = false);
    assert!(answer(&verdict(&results)).starts_with("Nothing can be said"));
    assert!(html(&results).contains("wrong result: no figure"));
}

#[test]
fn a_wrong_run_makes_no_point_of_its_own() {
    // A check failed on 3 variables, on which no other method was measured.
    let mut results = Recipe {
        modes: vec![Mode::Near],
        ..Recipe::default()
    }
    .make();
    let mut wrong = results.runs[0].clone();
    (wrong.correct, wrong.params.vars) = (false, 3);
    results.runs.push(wrong);
    assert!(!verdict(&results).to_string().contains("Incomplete"));
    assert!(
        verdict(&results).sections[0]
            .findings
            .iter()
            .all(|f| !f.level.vars.contains(&3))
    );
}

#[test]
fn models_are_used_only_if_they_hold() {
    let uniform = Recipe::default().make();
    let mut skewed = uniform.clone();
    skewed
        .runs
        .iter_mut()
        .for_each(|r| r.params.dist = "zipf:0.9".into());
    assert!(html(&uniform).contains("class=\"shade\"") && html(&uniform).contains(">L2 1 MiB<"));
    assert!(!html(&skewed).contains("class=\"shade\""));
    assert!(
        verdict(&skewed)
            .to_string()
            .contains("assume uniform choice")
    );
    let why = verdict(&uniform).sections[0].why.join(" ");
    assert!(
        why.contains("100\u{a0}% on 1 variable") && why.contains("50\u{a0}% on 2 variables"),
        "{why}"
    );
    assert!(why.contains("L3 holds 50\u{a0}%"), "{why}");
}

#[test]
fn the_most_threads_with_a_cpu_each_speak_for_all() {
    let recipe = Recipe {
        cpus: 4,
        threads: vec![2, 4, 8],
        vars: vec![1, 64],
        ..Recipe::default()
    };
    let told = verdict(&recipe.make());
    assert_eq!(told.sections[0].subject, "fetch-add, uniform, 4 threads");
    assert!(told.to_string().contains("More threads than CPUs (8)"));
    let crowded = Recipe {
        cpus: 2,
        threads: vec![4, 8],
        vars: vec![1],
        ..Recipe::default()
    };
    assert_eq!(
        verdict(&crowded.make()).sections[0].subject,
        "fetch-add, uniform, 4 threads"
    );
}

#[test]
fn a_method_that_favours_a_thread_is_called_unfair() {
    let mut results = Recipe::default().make();
    assert!(!verdict(&results).to_string().contains("Fairness:"));
    for run in results.runs.iter_mut().filter(|r| r.method == "ttas") {
        // Two methods alternate; only the split of each sample shows that each is unfair.
        for (i, sample) in run.samples.iter_mut().enumerate() {
            sample.per_thread = if i % 2 == 0 {
                vec![800, 200]
            } else {
                vec![200, 800]
            };
        }
    }
    let told = verdict(&results).sections[0].why.join(" ");
    assert!(
        told.contains(
            "the busiest of 2 threads did 80\u{a0}% with `ttas` of the operations (even: 50\u{a0}%)"
        ),
        "{told}"
    );
    assert!(html(&results).contains("20 / 80 %"));
}

#[test]
fn answer_is_short() {
    for Case { name, verdict, .. } in CASES.iter() {
        let text = verdict.answer();
        let width = text.lines().map(|line| line.chars().count()).max();
        assert!(width.is_some_and(|width| width <= 80), "{name}: {text}");
        let lines = text.lines().count() / verdict.answers.len();
        assert!(lines <= 22, "{name}: {text}");
        for answer in &verdict.answers {
            assert!((1..=3).contains(&answer.sentences.len()), "{name}: {text}");
        }
    }
}

#[test]
fn answer_changes_with_the_load_and_says_the_same_once() {
    let mops = |m: &str| match m {
        "mutex" => (10.0, 99.0),
        "trust-then" => (80.0, 60.0),
        "trust-post" => (80.0, 60.0),
        _ => (20.0, 100.0),
    };
    let methods = vec!["mutex", "ttas", "trust", "trust-then", "trust-post"];
    let recipe = Recipe {
        mops,
        methods,
        modes: vec![Mode::Near],
        noise: 0.01,
        ..Recipe::default()
    };
    let told = verdict(&recipe.make());
    let table = told.answers[0].table.as_ref().unwrap();
    let [hot, .., cold] = table.rows.as_slice() else {
        panic!("{table:?}")
    };
    assert!(
        hot[0].starts_with('1') && hot[1].starts_with("ttas "),
        "{hot:?}"
    );
    assert!(
        hot[2].starts_with("trust-then ") && hot[3] == "the same",
        "{hot:?}"
    );
    // A tenth of a mutex is not worth another lock.
    assert_eq!(cold[1..], ["mutex", "the same", "the same"]);
    let legend: Vec<&str> = told.answers[0]
        .legend
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(legend, ["mutex", "ttas", "trust-then"]);
    assert!(answer(&told).ends_with("the methods hardly differ: a plain `mutex` will do."));
}
