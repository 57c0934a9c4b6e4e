import FreshetPipelines

/// What a copy has to satisfy.
extension DefinitionReader {
    /// - Parameter copies: how the copy is written, where that is known.
    mutating func check(
        in file: Section, sources: [SourceDefinition]?, copies: ContentFormat?
    ) -> CheckRules {
        guard let section = section(.check, "check", in: file) else { return CheckRules() }
        let defaults = CheckRules()
        let minBytes = value("min-bytes", in: section, .size(0...ByteSize.largest))
        let maxBytes = value("max-bytes", in: section, .size(1...ByteSize.largest))
        if let minBytes, minBytes > maxBytes ?? defaults.maxBytes, let entry = section["min-bytes"] {
            let most = ByteSize.text(maxBytes ?? defaults.maxBytes)
            error(
                entry.value.location, "check.min-bytes", "'min-bytes' is more than 'max-bytes', \(most)",
                remedy: maxBytes == nil ? "that is the default: configure 'max-bytes' too" : nil,
                related: section["max-bytes"]?.location)
        }
        let types = list("type", in: section, .mediaType)
        if let entry = section["type"], let sources {
            if types?.isEmpty == true, case .sequence(let nodes) = entry.value.content, nodes.isEmpty {
                error(
                    entry.value.location, "check.type", "'type' is an empty list", remedy: "to allow any, leave it out")
            }
            if !sources.contains(where: { if case .http = $0 { true } else { false } }) {
                error(
                    entry.location, "check.type", "'type' belongs to a 'url': a file or a program states none",
                    remedy: "leave it out, or check the content by 'jq'")
            }
        }
        var rules = CheckRules(
            jq: value("jq", in: section, .program), minBytes: minBytes ?? defaults.minBytes,
            maxBytes: maxBytes ?? defaults.maxBytes, types: types?.map(\.value) ?? [])
        readContent(of: &rules, in: section, copies)
        return rules
    }

    /// What the copy holds.
    private mutating func readContent(of rules: inout CheckRules, in section: Section, _ copies: ContentFormat?) {
        rules.form = value("format", in: section, .choice())
        rules.items = value("items", in: section, .program)
        rules.minItems = value("min-items", in: section, .integer(1...Self.maximumItems))
        rules.shrink = value("shrink", in: section, .percentage)
        rules.validUntil = value("valid-until", in: section, .program)
        rules.madeAt = value("made-at", in: section, .program)
        rules.madeWithin = value("made-within", in: section, .duration(.seconds(1)...TimeSpan.longest))
        if let form = rules.form, copies == .text, form != .text, let entry = section["format"] {
            error(
                entry.value.location, "check.format", "'\(form)' is not what 'cache.format: text' makes",
                remedy: "leave one of them out")
        }
        if let form = rules.form, form.foreign != nil {
            let programs = ["jq", "items", "valid-until", "made-at"]
            if let entry = programs.lazy.compactMap({ section[$0] }).first {
                error(
                    entry.location, section.path(entry.key), "'\(entry.key)' is for JSON or text, not for \(form)",
                    remedy: "leave it out", related: section["format"]?.location)
            }
            if rules.minItems != nil, form != .pem, let entry = section["min-items"] {
                error(
                    entry.location, "check.min-items", "nothing says what the items of \(form) are",
                    remedy: "leave it out; 'min-bytes' and 'shrink' look at its size",
                    related: section["format"]?.location)
            }
        }
        if rules.items != nil, rules.minItems == nil, rules.shrink == nil, let entry = section["items"] {
            warning(
                entry.location, "check.items", "'items' is counted for 'min-items' and 'shrink', and there is neither",
                remedy: "add one of them, or leave it out")
        }
        if rules.madeWithin != nil, rules.madeAt == nil, let entry = section["made-within"] {
            error(
                entry.location, "check.made-within", "'made-within' without 'made-at': nothing says when it was made",
                remedy: "add the place of that time, such as made-at: .generated")
        }
    }

    /// More items than fit into ``JQRequest/maxInput``, whatever they are.
    private static var maximumItems: Int { 1_000_000_000 }
}

extension ValueKind where Value == Int {
    /// A share that is neither nothing nor all.
    fileprivate static let percentage = ValueKind(name: "a share such as 50%") { scalar throws(ValueError) in
        guard scalar.text.hasSuffix("%") else {
            throw ValueError("has to be a share such as 50%, not \(scalar.text.quoted)", remedy: "write it with a '%'")
        }
        let digits = scalar.text.dropLast()
        guard digits.utf8.allSatisfy({ (48...57).contains($0) }), let share = Int(digits), (0...99).contains(share)
        else {
            throw ValueError("has to be a whole number from 0% to 99%, not \(scalar.text.quoted)")
        }
        return share
    }
}
