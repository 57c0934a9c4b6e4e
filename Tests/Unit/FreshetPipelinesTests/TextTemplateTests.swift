import Testing

@testable import FreshetPipelines

@Suite("Placeholders in texts that are not URLs")
struct TextTemplateTests {
    private func filled(_ text: String, _ kind: TextTemplate.Kind, _ values: [String: String]) throws -> String {
        try TextTemplate(text, as: kind).filled { values[$0.description] }
    }

    @Test(
        "a placeholder is text that looks like one and has a value; all other text stays unchanged",
        arguments: [
            ("{a}", "1"), ("x{a}y{a}", "x1y1"), ("{ a }", "{ a }"), ("{a", "{a"), ("a}", "a}"), ("{}", "{}"),
            ("{b}", "{b}"), ("{b.c}", "2"), ("{{a}}", "{1}"), ("{x{a}", "{x1"), ("{print $1}", "{print $1}"), ("", ""),
        ])
    func placeholders(text: String, expected: String) throws {
        #expect(try filled(text, .argument, ["a": "1", "b.c": "2"]) == expected)
    }

    @Test("a value within a JSON string stays in the string, whatever it contains")
    func jsonString() throws {
        let value = "\"}, \\ \n\u{0} \u{7f} é {a}"
        #expect(
            try filled(#"{"q": "x {a}"}"#, .json, ["a": value])
                == #"{"q": "x \"}, \\ \u000a\u0000 \u007f é {a}"}"#)
        // An escaped quotation mark ends nothing.
        #expect(try filled(#"["\"{a}", {a}]"#, .json, ["a": "1"]) == #"["\"1", 1]"#)
        #expect(try filled(#"["\\", {a}]"#, .json, ["a": "1"]) == #"["\\", 1]"#)
    }

    @Test("a quotation mark, a backslash or a brace keeps its meaning with any combining accent")
    func combining() throws {
        let accent = "\u{301}"
        // As a separate character the mark would end no string, and the text after it would be misread.
        let text = "{\"a\": \"\(accent){a}\", \"b\": {b}}"
        #expect(
            try filled(text, .json, ["a": "\"x", "b": "1"]) == "{\"a\": \"\(accent)\\\"x\", \"b\": 1}")
        #expect(throws: TextTemplate.ValidationError.notAJSONValue(.init("b"))) {
            try filled(text, .json, ["a": "", "b": "1, \"c\": 2"])
        }
        #expect(try filled("[\"\\\"\(accent){a}\"]", .json, ["a": "\""]) == "[\"\\\"\(accent)\\\"\"]")
        #expect(try filled("{a}\(accent)", .argument, ["a": "e"]) == "e\(accent)")
    }

    @Test("outside of quotation marks a value is a number, true, false or null")
    func jsonValue() throws {
        for value in ["0", "-1", "10", "1.5", "1e9", "-0.25E-10", "true", "false", "null"] {
            #expect(try filled("[{a}]", .json, ["a": value]) == "[\(value)]")
        }
        for value in [
            "", "01", "+1", "1.", ".5", "1e", "- 1", "1,2", "\"x\"", "[]", "{}", "True", "nan", "0x1", "1 ", "\u{661}",
        ] {
            #expect(throws: TextTemplate.ValidationError.notAJSONValue(.init("a"))) {
                try filled("[{a}]", .json, ["a": value])
            }
        }
    }

    @Test("a header field stays one line of ASCII, within its length limit")
    func header() throws {
        #expect(try filled("a {a}", .header, ["a": "x; y=\"z\" ~"]) == "a x; y=\"z\" ~")
        for value in ["a\r\nX: 1", "\n", "\u{0}", "\t", "\u{7f}", "é"] {
            #expect(throws: TextTemplate.ValidationError.notInHeader(.init("a"))) {
                try filled("{a}", .header, ["a": value])
            }
        }
        let most = String(repeating: "x", count: TextTemplate.maximumHeaderLength)
        #expect(try filled("{a}", .header, ["a": most]) == most)
        #expect(throws: TextTemplate.ValidationError.tooLong(limit: TextTemplate.maximumHeaderLength)) {
            try filled("{a}", .header, ["a": most + "x"])
        }
    }

    @Test("a form's field stays one field, and a body stays within its length limit")
    func form() throws {
        #expect(try filled("q={a}&n=1", .form, ["a": "a&n=2 +é"]) == "q=a%26n%3D2%20%2B%C3%A9&n=1")
        let most = String(repeating: "x", count: TextTemplate.maximumBodyLength)
        #expect(try filled("{a}", .form, ["a": most]).utf8.count == TextTemplate.maximumBodyLength)
        #expect(throws: TextTemplate.ValidationError.tooLong(limit: TextTemplate.maximumBodyLength)) {
            try filled("{a}", .form, ["a": most + "x"])
        }
    }

    @Test("the kind of a body is known for JSON and for forms")
    func kinds() {
        typealias Kind = TextTemplate.Kind
        for type in ["application/json", "Application/JSON; charset=utf-8", "application/graphql+json", "text/json"] {
            #expect(Kind(contentType: type) == .json)
        }
        #expect(Kind(contentType: "application/x-www-form-urlencoded;charset=utf-8") == .form)
        for type in ["text/plain", "application/graphql", "text/xml", "application/jsonp"] {
            #expect(Kind(contentType: type) == nil)
        }
    }

    @Test("a source's placeholders are those of its URL, header fields and body, and each is encoded for its text")
    func source() throws {
        let source = SourceDefinition.http(
            HTTPSource(
                url: "https://a.example/{a}", headers: [HTTPHeader("X", "{b}"), .bearer("token")], host: "a.example",
                method: .post(body: #"{"c": "{c.d}"}"#, contentType: "application/json")))
        #expect(source.placeholders.map(\.description) == ["a", "b", "c.d"])
        let values = ["a": "/", "b": "x y", "c.d": "\""]
        let expected = SourceDefinition.http(
            HTTPSource(
                url: "https://a.example/%2F", headers: [HTTPHeader("X", "x y"), .bearer("token")], host: "a.example",
                method: .post(body: #"{"c": "\""}"#, contentType: "application/json")))
        #expect(try source.filled { values[$0.description] } == expected)
    }

    @Test("an error names the parameter whose value is invalid, and the effect")
    func errors() {
        let source = SourceDefinition.http(
            HTTPSource(
                url: "https://a.example/", headers: [HTTPHeader("X", "{b}")], host: "a.example",
                method: .post(body: "[{c}, {item.x}]", contentType: "application/json")))
        func error(_ values: [String: String]) -> String? {
            source.error(with: ParameterValues(values)).map { "\($0.parameter ?? "") \($0.error)" }
        }
        #expect(error(["b": "x", "c": "1"]) == nil)
        #expect(error(["b": "\u{e9}", "c": "1"])?.hasPrefix("b cannot stand in the header 'X'") == true)
        #expect(error(["b": "x", "c": "y"])?.hasPrefix("c stands in the body outside of quotation marks") == true)
    }
}
