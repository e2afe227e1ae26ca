//! The work of every decoder and encoder grows no faster than what callers and agents write.
//!
//! Two meters are read: `work` counts the bytes that are visited, and the allocator counts the bytes that are copied
//! to somewhere new, which finds work that was not reported. Each job is done with an input and with one that is four
//! times as large. A list that grows by doubling may allocate twice as much for one element more, so the second meter
//! has that much play; work that grows with the square of its input is at 16.

mod cards;
mod messages;
mod protobuf_v1;
mod requests;

use super::count;

/// How often a shape repeats its hostile element.
const SIZES: [usize; 2] = [250, 1000];

/// Its name, and the text that repeats its hostile element so often.
type Shape = (&'static str, fn(usize) -> String);

#[derive(Debug, Clone, Copy)]
struct Cost {
    visited: u64,
    allocated: u64,
}

fn cost(job: impl FnOnce()) -> Cost {
    let mut visited = 0;
    let allocated = allocation_counter::measure(|| visited = count(job)).bytes_total;
    Cost { visited, allocated }
}

/// What is wrong with how the work grows.
fn judge([few, many]: [Cost; 2]) -> Option<String> {
    let is_linear = many.visited * 2 <= few.visited * 9 && many.allocated <= few.allocated.max(256) * 9;
    (!is_linear).then(|| format!("{few:?} became {many:?}"))
}

/// What all jobs of a test have in common: they are done with the input of both sizes, and whatever grows too fast is
/// told together.
#[derive(Default)]
struct Report(Vec<String>);

impl Report {
    fn check<I>(&mut self, name: &str, input: impl Fn(usize) -> I, job: impl Fn(&I)) {
        let costs = SIZES.map(|size| {
            let input = input(size);
            cost(|| job(&input))
        });
        assert!(costs[0].visited > 0, "{name}: nobody counts what is done");
        self.0.extend(judge(costs).map(|wrong| format!("{name}: {wrong}")));
    }

    fn assert_linear(self) {
        assert!(self.0.is_empty(), "{} jobs grow too fast:\n{}", self.0.len(), self.0.join("\n"));
    }
}

/// `element` of 0, of 1 and so on, each of the same length, with commas between them.
fn repeat(size: usize, element: impl Fn(&str) -> String) -> String {
    let each: Vec<String> = (0..size).map(|place| element(&format!("{place:06}"))).collect();
    each.join(",")
}

#[test]
fn both_meters_notice_what_grows_with_the_square() {
    let object = |size| format!("{{{}}}", repeat(size, |place| format!(r#""{place}":1"#)));
    let parse = |text: &str| assert!(crate::json::parse::<serde::de::IgnoredAny>(text).is_ok());
    let mut report = Report::default();
    report.check("once", object, |text| parse(text));
    report.assert_linear();
    let costs = SIZES.map(|size| {
        let text = object(size);
        cost(|| (0..size).for_each(|_| parse(&text)))
    });
    assert!(judge(costs).is_some(), "{costs:?}");
    let costs = SIZES.map(|size| {
        let mut text = String::new();
        cost(|| (0..size).for_each(|_| text = format!("{text} and more")))
    });
    assert!(judge(costs).is_some(), "{costs:?}");
}
