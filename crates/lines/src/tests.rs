use proptest::prelude::*;
use serde_json::Value;

use super::*;

fn read(content: &[u8]) -> Option<Vec<(u8, String)>> {
    let columns = read_lines(content, &Wanted::new(&[vec!["a"], vec!["b", "c"], vec!["b"]]))?;
    let rows = columns[0].kinds.len();
    let mut found = Vec::new();
    for row in 0..rows {
        for column in &columns {
            let [begin, end] = [row, row + 1].map(|row| usize::try_from(column.ends[row]).unwrap());
            found.push((column.kinds[row], String::from_utf8(column.text[begin..end].to_vec()).unwrap()));
        }
    }
    Some(found)
}

fn kinds(content: &[u8]) -> Option<Vec<u8>> {
    read(content).map(|found| found.into_iter().map(|(kind, _)| kind).collect())
}

#[test]
fn gives_kinds_and_texts_of_the_members() {
    let found =
        read(b"{\"a\": \"x\\n\\u00e9\\/\", \"b\": {\"c\": -1.50e+3, \"d\": [1, {}]}}\r\n\n  {\"b\":{}}")
            .unwrap();
    let texts: Vec<_> = found.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(texts, ["x\n\u{e9}/", "-1.50e+3", "", "", "", ""]);
    assert_eq!(found.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), [1, 2, 3, 0, 0, 3]);
}

#[test]
fn kinds_of_others() {
    assert_eq!(kinds(b"{\"a\":null,\"b\":true}"), Some(vec![0, 0, 4]));
    assert_eq!(kinds(b"{\"a\":[],\"b\":{\"c\":{\"a\":1}}}"), Some(vec![4, 3, 3]));
    assert_eq!(kinds(b"\n \t\n"), Some(vec![]));
}

#[test]
fn gives_nothing_of_what_readers_take_differently() {
    let twice = [
        &b"{\"a\":1,\"a\":1}"[..],
        b"{\"x\":{\"y\":1,\"y\":2}}",
        b"{\"\\u0061\":1}",
        b"{\"x\":\"\\ud83d\\ude00\"}",
        b"{\"a\":NaN}",
        b"{\"a\":-Infinity}",
        b"{\"a\":01}",
        b"{\"a\":1.}",
        b"{\"a\":.5}",
        b"{\"a\":1e}",
        b"{\"a\":1e+}",
        b"{\"a\":1e1234}",
        b"{\"a\":-}",
        b"{\"a\":",
        b"{\"a\":1",
        b"{\"a\":\"x",
        b"{\"a\":\"x\\",
        b"{\"a\":\"x\\u00",
        b"{\"a\":\"x\\q\"}",
        b"{\"a\":\"x\ty\"}",
        b"{\"a\":\"\xff\"}",
        b"{\"a\":\"\xe2\x80\xa8\"}",
        b"{\"a\":1}{\"a\":1}",
        b"{\"a\":1} x",
        b"{\"a\":1,}",
        b"{,}",
        b"{\"a\" 1}",
        b"{\"x\":[1,]}",
        b"{\"x\":[1 2]}",
        b"{\"x\":tru}",
        b"{\"a\":\r1}",
        b"{\"a\":\x0c1}",
        b"[1]",
        b"1",
        b"\xef\xbb\xbf{}",
    ];
    for content in twice {
        assert_eq!(read(content), None, "{}", String::from_utf8_lossy(content));
    }
    let deep = [b"{\"x\":".repeat(40), b"1".to_vec(), b"}".repeat(40)].concat();
    assert_eq!(read(&deep), None);
    assert_eq!(read(format!("{{\"a\":{}}}", "1".repeat(41)).as_bytes()), None);
}

proptest! {
    #[test]
    fn is_what_another_reader_finds(
        texts in proptest::collection::vec(any::<String>(), 1..5),
        numbers in proptest::collection::vec(any::<f64>().prop_filter("finite", |n| n.is_finite()), 5),
    ) {
        let lines: Vec<String> = texts
            .iter()
            .zip(&numbers)
            .map(|(text, number)| serde_json::json!({"x": [text], "a": text, "b": {"c": number}}).to_string())
            .collect();
        let Some(found) = read(lines.join("\n").as_bytes()) else {
            let is_cut = texts.iter().any(|text| text.contains(['\u{85}', '\u{2028}', '\u{2029}']));
            prop_assert!(is_cut, "lines of Python end in none of these texts");
            return Ok(());
        };
        for (row, text) in texts.iter().enumerate() {
            prop_assert_eq!(&found[row * 3], &(1, text.clone()));
            prop_assert_eq!(&found[row * 3 + 1], &(2, serde_json::json!(numbers[row]).to_string()));
        }
    }

    #[test]
    fn accepts_nothing_that_another_reader_refuses(content in "[{}\\[\\]\",:a\\\\u0dnulltre1.eE+ -]{0,24}") {
        let line = format!("{{\"a\":{content}}}");
        if read(line.as_bytes()).is_some() {
            prop_assert!(serde_json::from_str::<Value>(&line).is_ok(), "{}", line);
        }
    }
}
