import FreshetHelper

@testable import FreshetTemplate

extension FuzzTarget {
    /// A template and its input, after a line `%%`.
    static let mustache = FuzzTarget(
        "mustache",
        shapes: [
            CostShape("a long string", before: "{{.}}\n%%\n\"", unit: "a", after: "\""),
            CostShape("combining characters", before: "{{.}}\n%%\n\"a", unit: "\u{301}", after: "\""),
            CostShape("escapes", before: "{{.}}\n%%\n\"", unit: "\\u00e9", after: "\""),
            CostShape("items", before: "{{#.}}{{.}}{{/.}}\n%%\n[1", unit: ",1", after: "]"),
            CostShape(
                "objects, and a name of the whole input",
                before: "{{#a}}{{b}}{{c}}{{/a}}\n%%\n{\"c\":1,\"a\":[{\"b\":1}",
                unit: ",{\"b\":1}", after: "]}"),
            CostShape("names", before: "{{z}}\n%%\n{\"z\":1", unit: ",\"\\u0061\":1", after: "}"),
            CostShape("lists that are not closed", before: "x\n%%\n", unit: "["),
            // No template of many tags: swift-mustache parses it in quadratic time, 1.5 s for the longest template. An
            // administrator writes templates; origins send only inputs.
            CostShape("sections that are not closed", unit: "{{#a}}", after: "\n%%\n{}"),
            CostShape("braces", unit: "{", after: "\n%%\n{}"),
        ],
        read: { input in
            let parts = sections(of: input)
            keep(render(parts.first ?? [], parts.dropFirst().first ?? [], .none))
        },
        check: { input throws(FuzzViolation) in
            let parts = sections(of: input)
            let (template, body) = (parts.first ?? [], parts.dropFirst().first ?? [])
            for escape in Escape.allCases { keep(render(template, body, escape)) }
            guard let json = try? JSONText(body) else { return }
            let text = json.text(0)
            switch json.kind(0) {
            case .string:
                let escaped = (try? Escape.json.escaped(text)) ?? ""
                let again = try? JSONText(Array("\"\(escaped)\"".utf8))
                try hold("an escaped string is a JSON string with the same content", again?.text(0) == text)
                if let word = try? Escape.shell.escaped(text) {
                    try hold("a word of the shell has the same content", unquoted(word) == text)
                }
            default:
                let again = try? JSONText(Array(text.utf8))
                try hold("the text of a value is a value with the same text", again?.text(0) == text)
            }
            let rendered = render(Array("{{{.}}}".utf8), body, .none)
            try hold(
                "a template writes a value as it is",
                json.kind(0) == .null ? rendered.status == .failed : rendered.bytes == Array(text.utf8))
        })

    private static func render(_ template: [UInt8], _ body: [UInt8], _ escape: Escape) -> HelperReply {
        TemplateHelper.reply(
            to: HelperRequest(
                .template, program: String(decoding: template, as: UTF8.self),
                variables: Array(escape.rawValue.utf8), input: body, maxOutput: 1 << 20))
    }

    /// The content of a word that consists of strings in single quotation marks and of escaped quotation marks; nil if
    /// it does not.
    private static func unquoted(_ word: String) -> String? {
        var (content, isQuoted, isEscaped) = (String.UnicodeScalarView(), false, false)
        for scalar in word.unicodeScalars {
            if isEscaped {
                guard scalar == "'" else { return nil }
                content.append(scalar)
                isEscaped = false
            } else if scalar == "'" {
                isQuoted.toggle()
            } else if isQuoted {
                content.append(scalar)
            } else {
                guard scalar == "\\" else { return nil }
                isEscaped = true
            }
        }
        return isQuoted || isEscaped ? nil : String(content)
    }
}
