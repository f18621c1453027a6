//! The ray tracer as its users run it: the picture in its file, its figures, and bad input.

use crate::program::{corelay, fine, refused};
use corelay_lab_measure::schema::{PictureResult, Results, Run, Size};
use std::path::Path;

/// Red, green and blue of each pixel of a PNG file, with its width and its height.
fn decode(path: &Path) -> (u32, u32, Vec<u8>) {
    let file = std::io::BufReader::new(std::fs::File::open(path).unwrap());
    let mut reader = png::Decoder::new(file).read_info().unwrap();
    let mut rgb = vec![0; reader.output_buffer_size().unwrap()];
    let frame = reader.next_frame(&mut rgb).unwrap();
    assert_eq!(frame.color_type, png::ColorType::Rgb);
    rgb.truncate(frame.buffer_size());
    (frame.width, frame.height, rgb)
}

/// The pictures of a run.
fn pictures(run: &Run) -> impl Iterator<Item = &PictureResult> {
    run.samples
        .iter()
        .map(|sample| sample.picture.as_ref().unwrap())
}

#[test]
fn picture_is_written_and_each_method_says_how_long_it_took() {
    let folder = tempfile::tempdir().unwrap();
    let (out, json) = (folder.path().join("a.png"), folder.path().join("a.json"));
    let flags = "bench raytrace --method mutex,trust,trust-then --threads 2 --size 64x40 --tile 9 \
                 --depth 4 --samples 2 --out";
    let mut args: Vec<&str> = flags.split_whitespace().collect();
    args.extend([out.to_str().unwrap(), "--json", json.to_str().unwrap()]);
    let table = fine(&corelay(&args));
    let (width, height, rgb) = decode(&out);
    assert_eq!((width, height, rgb.len()), (64, 40, 3 * 64 * 40));

    let results = std::fs::read_to_string(&json).unwrap();
    let results: Results = serde_json::from_str(&results).unwrap();
    let methods: Vec<&str> = results.runs.iter().map(|run| run.method.as_str()).collect();
    assert_eq!(methods, ["mutex", "trust", "trust-then"]);
    // FNV-1a.
    let hash = rgb.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let hash = format!("{hash:016x}");
    assert!(table.contains(&hash) && table.contains("mutex"), "{table}");
    for run in &results.runs {
        assert!(run.correct && run.workload == "raytrace" && run.samples.len() == 2);
        let extra = &run.params.extra;
        assert_eq!(extra.size, Some(Size::Asked("64x40".to_owned())));
        assert_eq!((extra.tile, extra.depth), (Some(9), Some(4)));
        assert!(extra.alone_s.unwrap() > 0.0);
        for picture in pictures(run) {
            assert_eq!((picture.tiles, &picture.hash), (8 * 5, &hash));
            assert!(picture.seconds > 0.0 && picture.rays > 64 * 40);
        }
    }
    let rays: Vec<_> = results.runs.iter().flat_map(pictures).collect();
    assert!(
        rays.windows(2)
            .all(|two| two[0].rays == two[1].rays && two[0].reflections == two[1].reflections)
    );
}

#[test]
fn one_number_makes_a_square_and_a_large_tile_is_the_whole_picture() {
    let flags = "bench raytrace --method mutex --threads 2 --size 16 --tile 100 --depth 0 \
                 --samples 1 --json -";
    let args: Vec<&str> = flags.split_whitespace().collect();
    let results: Results = serde_json::from_str(&fine(&corelay(&args))).unwrap();
    let picture = pictures(&results.runs[0]).next().unwrap();
    assert_eq!((picture.tiles, picture.reflections), (1, 0));
}

#[test]
fn bad_input_gets_one_sentence_before_anything_is_traced() {
    let bench = |line: &str, words: &[&str]| {
        let args: Vec<&str> = ["bench", "raytrace"]
            .into_iter()
            .chain(line.split(' '))
            .collect();
        refused(&args, words);
    };
    bench("--tile 0", &["--tile", "1..="]);
    bench("--tile -1", &["--tile", "`-1`"]);
    bench("--size 0", &["--size", "1..="]);
    bench("--size 0x10", &["--size", "320x240"]);
    bench("--size 10x", &["--size", "missing"]);
    bench("--size 10x10x10", &["--size", "`10x10`"]);
    bench("--size 65536x65537", &["--size", "65537"]);
    bench("--depth 65", &["--depth", "0..=64"]);
    bench("--method magic", &["--method", "`magic`", "trust-then"]);
    bench("--method atomic", &["--method", "`atomic`"]);
    bench("--threads 1 --method trust", &["--threads 1", "trust"]);
    bench("--samples 0", &["--samples"]);
    bench("--out -", &["--out -", "name a file"]);
    bench("--out /nowhere/at/all.png", &["--out /nowhere/at/all.png"]);
    bench(
        "--out /tmp/same --json /tmp/same",
        &["--out", "--json", "/tmp/same"],
    );
}

#[test]
#[cfg(target_os = "linux")]
fn picture_beyond_memory_is_refused() {
    // 28 GiB; a machine that has twice as much may trace it.
    let available = corelay_lab_measure::measure::memory::available_bytes();
    if available.is_some_and(|bytes| bytes < 56 << 30) {
        let args = ["bench", "raytrace", "--size", "65536"];
        refused(&args, &["--size 65536x65536", "MiB are available"]);
    }
}
