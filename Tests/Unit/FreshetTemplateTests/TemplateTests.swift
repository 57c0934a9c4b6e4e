import FreshetHelper
import Testing

@testable import FreshetTemplate

/// The output of a template, or its error.
func rendered(
    _ template: String, _ json: String, _ escape: Escape = .none, maxOutput: UInt64 = 1 << 20
) -> String {
    rendered(template, Array(json.utf8), escape, maxOutput: maxOutput)
}

func rendered(
    _ template: String, _ input: [UInt8], _ escape: Escape = .none, maxOutput: UInt64 = 1 << 20
) -> String {
    let reply = TemplateHelper.reply(
        to: HelperRequest(
            .template, program: template, variables: Array(escape.rawValue.utf8), input: input, maxOutput: maxOutput))
    let text = String(decoding: reply.bytes, as: UTF8.self)
    return reply.status == .done ? text : "\(reply.status): \(text)"
}

// swift-mustache keeps content types by their names for the whole process, so these tests run one after the other.
@Suite("A template", .serialized)
struct TemplateTests {
    @Test("writes values as the input has them")
    func values() {
        let json = #"{"n": [12345678901234567890, 1e100, 1.10, -0, 0.1E+7], "o": {"a" : 1}, "t": true, "f": false}"#
        #expect(rendered("{{#n}}{{.}} {{/n}}", json) == "12345678901234567890 1e100 1.10 -0 0.1E+7 ")
        #expect(rendered("{{n}} {{{o}}} {{&t}} {{f}}", json).hasSuffix(#"-0, 0.1E+7] {"a" : 1} true false"#))
        #expect(rendered("{{.}}", "1.50") == "1.50")
        #expect(rendered("{{.}}", "\u{FEFF} 1") == "1", "a byte order mark is ignored")
        #expect(rendered("{{{.}}}", #""\u00e9\ud83d\ude00 \n\/\"\\ \ud800""#) == "é😀 \n/\"\\ \u{FFFD}")
        #expect(rendered("{{a.b.c}}", #"{"a": {"b": {"c": "deep"}}}"#) == "deep")
    }

    @Test("looks names up in the sections around a tag, the innermost first")
    func names() {
        let json = #"{"name": "outer", "list": [{"name": "inner"}, {}], "other": {"name": "o"}}"#
        #expect(rendered("{{#list}}{{name}} {{other.name}};{{/list}}", json) == "inner o;outer o;")
        #expect(rendered("{{#other}}{{#list}}{{name}};{{/list}}{{/other}}", json) == "inner;o;")
        // Of two members with one name the last counts, and a name may have escapes.
        #expect(rendered("{{a}}", #"{"a": 1, "a": 2}"#) == "2")
        #expect(rendered("{{ab}}", #"{"\u0061b": 1}"#) == "1")
    }

    @Test("finds names in an object with many members", arguments: [0, 16, 17, 3_000])
    func manyMembers(count: Int) {
        let members = (0..<count).map { #""m\#($0)": \#($0)"# } + [#""list": [1, 2]"#, #""last": "x""#]
        let json = "{\(members.joined(separator: ", "))}"
        #expect(rendered("{{#list}}{{.}}{{last}}{{/list}}{{^none}}-{{/none}}{{^none}}-{{/none}}", json) == "1x2x--")
    }

    @Test("leaves sections out for false, null, missing names and empty lists only")
    func sections() {
        let json = #"{"false": false, "null": null, "empty": [], "zero": 0, "text": "", "object": {}, "true": true}"#
        for name in ["false", "null", "empty", "missing", "object.missing", "true.missing"] {
            #expect(rendered("{{#\(name)}}yes{{/\(name)}}{{^\(name)}}no{{/\(name)}}", json) == "no", "\(name)")
        }
        for name in ["zero", "text", "object", "true"] {
            #expect(rendered("{{#\(name)}}yes{{/\(name)}}{{^\(name)}}no{{/\(name)}}", json) == "yes", "\(name)")
        }
    }

    @Test("repeats a section for each item, also of lists in lists, and knows the item's position")
    func lists() {
        #expect(rendered("{{#.}}{{#.}}{{.}}{{^last()}},{{/last()}}{{/.}};{{/.}}", "[[1,2],[],[3]]") == "1,2;;3;")
        #expect(
            rendered("{{#.}}{{index()}}{{#first()}}F{{/first()}}{{#odd()}}O{{/odd()}} {{/.}}", "[7,7,7]") == "0F 1O 2 ")
        #expect(rendered("{{#.}}\n- {{.}}\n{{/.}}\nend\n", "[1,2]") == "- 1\n- 2\nend\n")
        #expect(rendered("{{=<% %>=}}<%#.%>{{<%.%>}}<%/.%>", "[1]") == "{{1}}")
    }

    @Test("does not write a name that is missing or null: that is an error with its position")
    func missingNames() {
        #expect(rendered("\n  {{name}}", "{}") == "failed: 2 3 'name' is missing")
        #expect(rendered("{{a.b}}", #"{"a": {}}"#) == "failed: 1 1 'a.b' is missing")
        #expect(rendered("{{a.b}}", #"{"a": [{"b": 1}]}"#) == "failed: 1 1 'a.b' is missing")
        #expect(rendered("{{{a.b.c}}}", #"{"a": 1}"#) == "failed: 1 1 'a.b.c' is missing")
        #expect(rendered("é{{#list}}{{x}}{{/list}}", #"{"list": [{"x": 1}, {}]}"#) == "failed: 1 11 'x' is missing")
        #expect(rendered("{{&a}}", #"{"a": null}"#) == "failed: 1 1 'a' is null")
        #expect(rendered("{{#a}}{{.}}{{/a}}", #"{"a": [1, null]}"#) == "failed: 1 7 '.' is null")
        #expect(rendered("{{name}}", "[]") == "failed: 1 1 'name' is missing")
    }

    @Test(
        "is rejected with the position of the error",
        arguments: [
            ("{{#a}}", "1 1 the section 'a' is not closed: {{/a}} is missing"),
            ("x\n{{#a}}\n {{/b}}", "3 2 {{/b}} does not close the section 'a' of line 2"),
            ("{{/a}}", "1 1 {{/a}} closes no section"),
            ("{{> other}}", "1 1 a template cannot use other templates: {{>…}}"),
            ("{{< other}}{{/other}}", "1 1 a template cannot use other templates: {{<…}}"),
            ("{{$block}}{{/block}}", "1 1 a template cannot use other templates: {{$…}}"),
            ("{{% CONTENT_TYPE:TEXT}}", "1 1 pragmas are not supported: {{%…}}; transform.escape sets the escape"),
            ("{{a", "1 1 the tag is not closed"), ("{{", "1 1 the tag is not closed"),
            ("{{! a", "1 1 the comment is not closed"), ("{{}}", "1 1 the tag has no name"),
            ("{{.a}}", "1 1 '.a' is not a name: a dot is between two names, or alone"),
            ("{{first()}}", "1 1 'first()' needs a section: {{#first()}}…{{/first()}}"),
            ("{{=<% =}}", "1 1 other delimiters are written {{=<% %>=}}"),
            ("{{=<% %>=}}<%{a}%>", "1 12 write & instead of { with other delimiters"),
        ])
    func errors(template: String, message: String) {
        #expect(rendered(template, "{}") == "invalidProgram: \(message)")
        #expect(rendered(template, "") == "invalidProgram: \(message)", "without input, it is only parsed")
    }

    @Test("is rejected if a name has other characters, or a function is unknown")
    func otherNames() {
        for template in [
            "{{a b}}", "{{ #a}}", "{{é}}", "{{\na}}", "{{a$}}", "{{uppercased(a)}}", "{{#sorted(a)}}{{/sorted(a)}}",
        ] {
            #expect(rendered(template, "{}").hasPrefix("invalidProgram: 1 1 "), "\(template)")
        }
    }

    @Test(
        "is rejected with a position and a remedy if a character joins a brace of a tag",
        arguments: ["{{a}}\u{301}", "{{! c }}\u{301}", "{{#a}}\u{301}{{/a}}", "{{{a}}}\u{FE0F}"])
    func joined(template: String) {
        let message = "the combining character after the tag joins its last brace; put another one between them"
        #expect(rendered(template, #"{"a":"1"}"#) == "invalidProgram: 1 1 \(message)")
    }

    @Test("is rejected if a character before a tag joins its first brace, and takes other characters beside a tag")
    func neighbours() {
        #expect(
            rendered("x\u{600}{{a}}", "{}")
                == "invalidProgram: 1 3 the character before the tag joins its first brace; put another one between them"
        )
        #expect(rendered("e\u{301}{{a}}\u{E9}\u{200B}\u{301}", #"{"a":"1"}"#) == "e\u{301}1\u{E9}\u{200B}\u{301}")
    }

    @Test("has a limit of nesting")
    func nesting() {
        func nested(_ depth: Int) -> String {
            String(repeating: "{{#a}}", count: depth) + "x" + String(repeating: "{{/a}}", count: depth)
        }
        #expect(rendered(nested(TagScanner.depthLimit), #"{"a": true}"#) == "x")
        #expect(rendered(nested(TagScanner.depthLimit + 1), "{}").hasSuffix("nested deeper than 64 levels"))
        #expect(rendered(String(repeating: "{{#a}}", count: 10_000), "{}").hasSuffix("nested deeper than 64 levels"))
    }

    @Test("does not read the input as a template")
    func inputIsNoTemplate() {
        #expect(rendered("{{a}}{{{a}}}", #"{"a": "{{b}}{{#b}}"}"#) == "{{b}}{{#b}}{{b}}{{#b}}")
    }

    @Test(
        "needs one JSON text",
        arguments: [
            ("{} {}", "text follows the first JSON text; a template needs exactly one (byte 4)"),
            (" ", "it is empty (byte 2)"), ("{", "a name in quotation marks is expected (byte 2)"),
            ("[1,]", "a JSON value is expected (byte 4)"), ("{\"a\" 1}", "':' is expected (byte 6)"),
            ("01", "text follows the first JSON text; a template needs exactly one (byte 2)"),
            ("1.", "a digit is expected (byte 3)"), ("-", "a digit is expected (byte 2)"),
            ("nul", "a JSON value is expected (byte 1)"), ("\"a", "a string is not closed (byte 3)"),
            ("\"\\x\"", "an unknown escape is in a string (byte 3)"),
            ("\"\\u12g4\"", "four hexadecimal digits are expected (byte 3)"),
            ("\"\\u12", "four hexadecimal digits are expected (byte 3)"),
            ("\"\\", "an unknown escape is in a string (byte 3)"),
            ("\"\u{1}\"", "a control character is in a string (byte 2)"), ("'a'", "a JSON value is expected (byte 1)"),
        ])
    func invalidInput(json: String, message: String) {
        #expect(rendered("{{.}}", json) == "invalidInput: 0 0 \(message)")
    }

    @Test("rejects input that is nested too deeply, or not UTF-8")
    func deepInput() {
        func nested(_ depth: Int) -> String {
            String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        }
        #expect(rendered("x", nested(JSONText.depthLimit)) == "x")
        #expect(rendered("x", nested(JSONText.depthLimit + 1)).contains("nested deeper than 256 levels"))
        #expect(rendered("x", String(repeating: #"{"a":"#, count: 100_000)).contains("nested deeper"))
        #expect(rendered("x", [0x22, 0xFF, 0x22]) == "invalidInput: 0 0 it is not UTF-8 (byte 2)")
    }

    @Test("has a limit of output")
    func outputLimit() {
        #expect(rendered("{{.}}", #""12345""#, maxOutput: 5) == "12345")
        #expect(rendered("{{.}}", #""123456""#, maxOutput: 5) == "outputTooLarge: ")
    }
}

extension TemplateTests {
    @Suite("An escape")
    struct EscapeTests {
        @Test("leaves three braces alone, and escapes two")
        func braces() {
            #expect(rendered("{{{.}}}{{&.}}{{.}}", #""<&>""#, .html) == "<&><&>&lt;&amp;&gt;")
            #expect(rendered("{{.}}", #""<&>'\"""#, .none) == "<&>'\"")
        }

        @Test("html also escapes a character with combining characters")
        func html() {
            #expect(rendered("{{.}}", "\"\\\"\u{301}<\u{338}'\"", .html) == "&quot;\u{301}&lt;\u{338}&#39;")
        }

        @Test("json writes the inside of a string")
        func json() {
            #expect(rendered("{{.}}", #""\"\\\n\u0000\u001f\u007fé/""#, .json) == "\\\"\\\\\\n\\u0000\\u001f\u{7f}é/")
            #expect(rendered("{{.}}", #"{"a": "b"}"#, .json) == #"{\"a\": \"b\"}"#)
            #expect(rendered("{{.}} {{{.}}}", "1.10", .json) == "1.10 1.10")
        }

        @Test("shell writes one word")
        func shell() {
            #expect(rendered("{{.}}", #""it's $(x) `y`\n\\""#, .shell) == "'it'\\''s $(x) `y`\n\\'")
            #expect(rendered("{{.}}", #""""#, .shell) == "''")
            #expect(rendered("{{.}}", #""''""#, .shell) == "''\\'''\\'''")
            #expect(
                rendered("{{.}}", #""a\u0000""#, .shell)
                    == "failed: 1 1 '.' contains a NUL, which a word of a shell cannot"
            )
        }

        @Test("nginx writes the inside of a string, and rejects what nginx cannot quote")
        func nginx() {
            #expect(rendered("{{.}}", #""a\"b\\c\n\r\t;{}#'é""#, .nginx) == "a\\\"b\\\\c\\n\\r\\t;{}#'é")
            #expect(rendered("{{a}}", #"{"a": "$x"}"#, .nginx).hasPrefix("failed: 1 1 'a' contains '$'"))
            #expect(rendered("{{.}}", #""\u0000""#, .nginx).hasPrefix("failed: 1 1 '.' contains a NUL"))
            // Sections do not write the value.
            #expect(rendered("{{#a}}x{{/a}}", #"{"a": "$x"}"#, .nginx) == "x")
        }
    }
}
