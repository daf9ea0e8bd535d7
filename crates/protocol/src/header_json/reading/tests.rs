use super::super::decode_any;
use super::*;

const HEADERS: [&str; 6] = [
    r#"{"code":0,"extFields":{"queueId":"3","TRACE_ON":"true","MSG_REGION":"DefaultRegion","msgId":"7F00000100002A9F0000000000000400","queueOffset":"1234567"},"flag":1,"language":"JAVA","opaque":9,"serializeTypeCurrentRPC":"JSON","version":513}"#,
    r#"{"code":0,"extFields":{"suggestWhichBrokerId":"0","nextBeginOffset":"32","minOffset":"0","maxOffset":"123456"},"flag":1,"language":"JAVA","opaque":2147483647,"remark":"FOUND","serializeTypeCurrentRPC":"JSON","version":475}"#,
    r#"{"code":326,"extFields":{"i":"KEYS\u0001k\u0002WAIT\u0001true\u0002\"","b":"\\t\/\b\f\n\r\t","":"","ü":"漢\uD83D"},"flag":2,"language":"GO","opaque":-1,"remark":"\u00fc\u6F22\u0000","version":-2147483648}"#,
    r#"{"code":1,"flag":1,"language":"CPP","opaque":0,"remark":"漢\n\ud83d\ude00 \"😀\"","serializeTypeCurrentRPC":"JSON","version":0}"#,
    r#"{"code":-2147483648,"extFields":{}}"#,
    " {\t\"version\" : 1 ,\n\"extFields\":{ \"a\" :\"1\"\r, \"b\": \"2\" } , \"code\": 7 } \n",
];

/// What the short way takes is what the library reads; whether it took it.
fn compare(header: &[u8]) -> bool {
    let Some(read) = read(header) else {
        return false;
    };
    let shown = String::from_utf8_lossy(header);
    assert_eq!(decode_any(header), Ok(read), "{shown}");
    true
}

#[test]
fn what_servers_write_takes_the_short_way() {
    for header in HEADERS {
        let halved = header.contains(r"\uD83D") || header.contains(r"\ud83d");
        assert_eq!(compare(header.as_bytes()), !halved, "{header}");
    }
    for code in [0, 9, 10, -1, i32::MAX, i32::MIN] {
        assert!(compare(format!(r#"{{"code":{code}}}"#).as_bytes()));
    }
}

#[test]
fn what_is_written_here_takes_the_short_way() {
    let mut command = RemotingCommand::request_without_header(310);
    command.remark = Some((0..0x21).map(char::from).collect());
    for number in 0..64 {
        command.ext_fields.set(
            format!("{number}\u{2}"),
            "v\u{1}\u{1F600}\"\\".repeat(number),
        );
    }
    let mut header = bytes::BytesMut::new();
    super::super::encode(&command, &mut header);
    assert_eq!(read(&header), Some(command.clone()));
    assert!(compare(&header));
    command.ext_fields.set("one more", "");
    header.clear();
    super::super::encode(&command, &mut header);
    assert_eq!(read(&header), None, "the library's way sorts so many");
}

/// Each is refused by the library, or means something that is its to say.
#[test]
fn all_else_is_left_to_the_library() {
    let fields = [
        r#"{"a":"1","a":"2"}"#,
        r#"{"a":"1","\u0061":"2"}"#,
        r#"{"a":1}"#,
        r#"{"a":true}"#,
        r#"{"a":null}"#,
        r#"{"a":{}}"#,
        r#"{"a":["b"]}"#,
        r#"{"a":"1",}"#,
        r#"{,"a":"1"}"#,
        r#"{"a":"1""b":"2"}"#,
        r#"{"a""1"}"#,
        r#"{"a":"\x"}"#,
        r#"{"a":"\u00g0"}"#,
        r#"{"a":"\u+041"}"#,
        r#"{"a":"\u004"}"#,
        r#"{"a":"\ud83d"}"#,
        r#"{"a":"\ud83d\u0041"}"#,
        r#"{"a":"\udc00"}"#,
        r#"{a:"1"}"#,
        r#"{0:"1"}"#,
        "{\"a\":\"\u{1}\"}",
        "{\"a\u{1F}\":\"\"}",
        r#"{"a":"1"]"#,
        r#"["a"]"#,
        r#""a""#,
        "null",
        "{",
    ];
    let numbers = [
        "-0",
        "00",
        "01",
        "-01",
        "1.0",
        "1e1",
        "1E1",
        "-",
        "+1",
        "2147483648",
        "-2147483649",
        "12345678901",
        "18446744073709551616",
        "\"1\"",
        "null",
        "true",
        "",
        "1 1",
        "0x1",
        "1_0",
    ];
    let texts = [
        "1",
        "null",
        "true",
        "{}",
        "\"",
        "\"\u{0}\"",
        "'a'",
        r#""\"#,
        r#""\q""#,
    ];
    let whole = [
        "",
        "{}",
        "[]",
        "null",
        "0",
        "{",
        "}",
        r#"{"flag":0}"#,
        r#"{"code":0"#,
        r#"{"code":0}}"#,
        r#"{"code":0},"#,
        r#"{"code":0}x"#,
        r#"{"code":0,}"#,
        r#"{,"code":0}"#,
        r#"{"code" 0}"#,
        r#"{"code":0 "flag":0}"#,
        r#"{"code":0,"code":0}"#,
        r#"{"c\u006fde":0}"#,
        "{\"code\":0}\u{A0}",
        "\u{FEFF}{\"code\":0}",
        r#"{"code":0,"more":{"a":[1]}}"#,
        r#"{"code":0,"Code":1}"#,
        "{\"code\":0}\u{B}",
        r#"[0,null,0,null,0,null,0]"#,
        r#"{"code":0,"language":"\u004aAVA"}"#,
        r#"{"code":0}//"#,
        r#"{"code":0,"serializeTypeCurrentRPC":1}"#,
        r#"{"code":0,"serializeTypeCurrentRPC":"\u00"}"#,
        r#"{"code":0,"serializeTypeCurrentRPC":"","serializeTypeCurrentRPC":""}"#,
    ];
    let fields = fields.map(|fields| format!(r#"{{"code":0,"extFields":{fields},"flag":1}}"#));
    let numbers = numbers.map(|number| format!(r#"{{"code":{number},"opaque":{number}}}"#));
    let texts = texts
        .iter()
        .flat_map(|text| ["language", "remark"].map(|key| (key, text)))
        .map(|(key, text)| format!(r#"{{"code":0,"{key}":{text}}}"#));
    let whole = whole.map(str::to_owned);
    for header in fields.into_iter().chain(numbers).chain(texts).chain(whole) {
        assert_eq!(read(header.as_bytes()), None, "{header}");
    }
    for key in [
        "extFields",
        "flag",
        "language",
        "opaque",
        "remark",
        "version",
    ] {
        let value = match key {
            "extFields" => "{}",
            "language" | "remark" => "\"\"",
            _ => "0",
        };
        let once = format!(r#"{{"code":0,"{key}":{value}}}"#);
        assert!(compare(once.as_bytes()), "{once}");
        let twice = format!(r#"{{"code":0,"{key}":{value},"{key}":{value}}}"#);
        assert_eq!(read(twice.as_bytes()), None, "{twice}");
    }
    for bad in [
        &b"{\"code\":0,\"remark\":\"\xFF\"}"[..],
        b"{\"code\":0,\"remark\":\"\xC3\"}",
        b"\xFF",
    ] {
        assert_eq!(read(bad), None);
    }
}

/// SplitMix64: small, and the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % end.max(1) as u64) as usize
    }

    fn one_of<'a>(&mut self, texts: &[&'a str]) -> &'a str {
        texts[self.below(texts.len())]
    }

    /// What is right as a rule, and something else at times.
    fn mostly<'a>(&mut self, right: &'a str, others: &[&'a str]) -> &'a str {
        match self.below(20) {
            0 => self.one_of(others),
            _ => right,
        }
    }

    fn object(&mut self, keys: &[&str], depth: usize) -> String {
        let mut text = self.mostly("{", &["{ ", "[", ""]).to_owned();
        for number in 0..self.below(5) {
            if number > 0 {
                text += self.mostly(",", &[" , ", "", ",,", "\u{C},"]);
            }
            let key = self.one_of(keys);
            text += &format!("\"{key}");
            text += self.mostly("\":", &["\" : ", "\"", ":"]);
            text += &match self.below(12) {
                0 => self.inside(),
                1 => "null".to_owned(),
                _ if key == "extFields" => self.object(&["a", "b", "\\u0061", "A", "", "é"], 1),
                _ if depth == 1 || matches!(key, "language" | "remark" | "more") => {
                    format!("\"{}\"", self.inside())
                }
                _ => self
                    .mostly("-17", &["0", "7", "-0", "01", "1.5", "2147483648"])
                    .to_owned(),
            };
        }
        text + self.mostly("}", &[" }", "]", ""])
    }

    fn inside(&mut self) -> String {
        const RIGHT: [&str; 9] = [
            "a", "1234567", "JAVA", "漢", "\\n", "\\u0001", "\\/", "\\\"", "\u{7F} ",
        ];
        const OTHERS: [&str; 5] = ["\\ud83d\\ude00", "\\ud83d", "\\x", "\u{1}", "\""];
        (0..self.below(4))
            .map(|_| {
                let right = self.one_of(&RIGHT);
                self.mostly(right, &OTHERS)
            })
            .collect()
    }

    fn mutate(&mut self, header: &mut Vec<u8>) {
        const TOKENS: [&str; 16] = [
            "\"",
            "\\",
            "{",
            "}",
            ":",
            ",",
            " ",
            "null",
            "\\u0000",
            "\\ud800",
            "\u{1}",
            "é",
            "-",
            ".0",
            "\"code\":1,",
            "\"a\":\"b\",",
        ];
        let at = self.below(header.len());
        match self.below(5) {
            0 => header[at] = self.below(256) as u8,
            1 => drop(header.remove(at)),
            2 => drop(header.splice(at..at, self.one_of(&TOKENS).bytes())),
            3 => {
                let end = header.len().min(at + self.below(24));
                let piece = header[at..end].to_vec();
                let to = self.below(header.len());
                drop(header.splice(to..to, piece));
            }
            _ => header.truncate(at),
        }
        if header.is_empty() {
            header.push(b'{');
        }
    }
}

#[test]
fn mutants_and_random_objects_are_read_as_the_library_reads_them() {
    let mut random = Random(1);
    let mut taken = 0;
    for number in 0..50_000 {
        let mut header = HEADERS[number % HEADERS.len()].as_bytes().to_vec();
        for _ in 0..=random.below(2) {
            random.mutate(&mut header);
        }
        taken += usize::from(compare(&header));
        let keys = [
            "code",
            "extFields",
            "flag",
            "language",
            "opaque",
            "remark",
            "version",
            "more",
        ];
        let mut object = random.object(&keys, 0);
        if random.below(4) > 0 {
            object = object.replacen('{', "{\"code\":1,", 1);
        }
        taken += usize::from(compare(object.as_bytes()));
    }
    assert!(taken > 7_000, "{taken} took the short way");
}
