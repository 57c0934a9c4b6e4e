import FreshetPipelines

/// The key `check`: the rules that a copy has to satisfy.
struct CheckReader {
    let reader: DefinitionReader

    /// - Parameter copies: the format of the copy, if known.
    func check(
        in file: Section, sources: [SourceDefinition]?, copies: ContentFormat?
    ) -> CheckRules {
        guard let section = reader.section(.check, "check", in: file) else { return CheckRules() }
        let defaults = CheckRules()
        let minBytes = reader.value("min-bytes", in: section, .size(0...ByteSize.largest))
        let maxBytes = reader.value("max-bytes", in: section, .size(1...ByteSize.largest))
        if let minBytes, minBytes > maxBytes ?? defaults.maxBytes, let entry = section["min-bytes"] {
            let most = ByteSize.text(maxBytes ?? defaults.maxBytes)
            reader.addError(
                entry.value.location, "check.min-bytes", "'min-bytes' is greater than 'max-bytes' (\(most))",
                remedy: maxBytes == nil
                    ? "\(most) is the default of 'max-bytes': set 'max-bytes' too"
                    : "lower 'min-bytes', or raise 'max-bytes'",
                related: section["max-bytes"]?.location)
        }
        let types = reader.list("type", in: section, .mediaType)
        if let entry = section["type"], let sources {
            if types?.isEmpty == true, case .sequence(let nodes) = entry.value.content, nodes.isEmpty {
                reader.addError(
                    entry.value.location, "check.type", "'type' is an empty list",
                    remedy: "leave it out to allow every type")
            }
            if !sources.contains(where: { if case .http = $0 { true } else { false } }) {
                reader.addError(
                    entry.location, "check.type", "'type' needs a 'url': a file or a program has no media type",
                    remedy: "leave it out, or check the content with 'jq'")
            }
        }
        var rules = CheckRules(
            jq: reader.value("jq", in: section, .program), minBytes: minBytes ?? defaults.minBytes,
            maxBytes: maxBytes ?? defaults.maxBytes, types: types?.map(\.value) ?? [])
        readContent(of: &rules, in: section, copies)
        return rules
    }

    /// Reads the rules for the content of the copy.
    private func readContent(of rules: inout CheckRules, in section: Section, _ copies: ContentFormat?) {
        rules.form = reader.value("format", in: section, .choice())
        rules.items = reader.value("items", in: section, .program)
        rules.minItems = reader.value("min-items", in: section, .integer(1...Self.maximumItems))
        rules.shrink = reader.value("shrink", in: section, .percentage)
        rules.validUntil = reader.value("valid-until", in: section, .program)
        rules.madeAt = reader.value("made-at", in: section, .program)
        rules.madeWithin = reader.value("made-within", in: section, .duration(.seconds(1)...TimeSpan.longest))
        if let form = rules.form, copies == .text, form != .text, let entry = section["format"] {
            reader.addError(
                entry.value.location, "check.format", "'format: \(form)' contradicts 'cache.format: text'",
                remedy: "leave one of them out")
        }
        if let form = rules.form, form.foreign != nil {
            let programs = ["jq", "items", "valid-until", "made-at"]
            if let entry = programs.lazy.compactMap({ section[$0] }).first {
                reader.addError(
                    entry.location, section.path(entry.key), "'\(entry.key)' needs JSON or text, not \(form)",
                    remedy: "leave it out", related: section["format"]?.location)
            }
            if rules.minItems != nil, form != .pem, let entry = section["min-items"] {
                reader.addError(
                    entry.location, "check.min-items", "'min-items' cannot count items in \(form)",
                    remedy: "leave it out; 'min-bytes' and 'shrink' check the size",
                    related: section["format"]?.location)
            }
        }
        if rules.items != nil, rules.minItems == nil, rules.shrink == nil, let entry = section["items"] {
            reader.warning(
                entry.location, "check.items", "'items' has no effect without 'min-items' or 'shrink'",
                remedy: "add one of them, or leave 'items' out")
        }
        if rules.madeWithin != nil, rules.madeAt == nil, let entry = section["made-within"] {
            reader.addError(
                entry.location, "check.made-within", "'made-within' needs 'made-at', the time when the data was made",
                remedy: "add a program that returns this time, such as made-at: .generated")
        }
    }

    /// More items than fit into ``HelperRequest/maxInput``, whatever they are.
    private static var maximumItems: Int { 1_000_000_000 }
}

extension ValueKind where Value == Int {
    /// A percentage below 100.
    fileprivate static let percentage = ValueKind(name: "a percentage such as 50%") { scalar throws(ValueError) in
        guard scalar.text.hasSuffix("%") else {
            throw ValueError("has to be a percentage such as 50%, not \(scalar.text.quoted)", remedy: "add a '%'")
        }
        let digits = scalar.text.dropLast()
        guard digits.utf8.allSatisfy({ (48...57).contains($0) }), let share = Int(digits), (0...99).contains(share)
        else {
            throw ValueError("has to be a percentage from 0% to 99%, not \(scalar.text.quoted)")
        }
        return share
    }
}
