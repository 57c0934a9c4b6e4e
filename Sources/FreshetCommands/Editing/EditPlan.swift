import FreshetControl
import Glibc

/// Which file an edit is of, and what it begins with: found by looking, before anything is done.
struct EditPlan: Hashable {
    /// The file that is made or replaced.
    var target: String
    /// What it begins with.
    var text: [UInt8]
    /// The file below that it is a copy of, or is laid over; nil: none.
    var source: String?
    /// The target is not there yet.
    var isNew: Bool
    /// A text that is saved as it began is meant: it is an example.
    var isWhole = false

    /// What is asked for.
    struct Request: Hashable {
        var name: String
        var isNew = false
        var example: String?
        var isDropIn = false
        /// The highest first.
        var directories: [String]
        /// Where examples are.
        var examples: [String] = []
    }

    /// The system's search path for configuration.
    static let systemDirectories = ["/etc/freshet", "/run/freshet-config", "/usr/lib/freshet"]
    static let dropInName = "override.yaml"

    /// A name below a directory, letter for letter as freshetd has it in what it says of the file.
    static func path(_ directory: String, _ name: String) -> String {
        var directory = directory[...]
        while directory.count > 1, directory.hasSuffix("/") { directory = directory.dropLast() }
        return directory == "." ? name : directory == "/" ? "/" + name : "\(directory)/\(name)"
    }

    static func find(_ request: Request) throws(CommandFailure) -> EditPlan {
        let name = request.name
        guard isName(name), let top = request.directories.first else {
            throw CommandFailure(
                .failure,
                "'\(name)' is not a pipeline's name: use letters, digits, '-', '_' and '.', and begin with a letter, a "
                    + "digit or '_'")
        }
        let target = path(top, "pipelines/\(name).yaml")
        let places: [String] = request.directories.map { path($0, "pipelines/\(name).yaml") }
        let found = places.first(where: EditedFile.isNamed)
        if let found, EditedFile.isMask(found) {
            throw CommandFailure(
                .failure, "'\(name)' is masked: '\(found)' is a link to /dev/null; remove that first: rm \(found)")
        }
        if request.isNew {
            guard found == nil else {
                throw CommandFailure(
                    .failure, "there is a pipeline '\(name)' already: '\(found ?? "")'; edit it without --new")
            }
            guard let example = request.example else {
                return EditPlan(target: target, text: Array(template(name).utf8), isNew: true)
            }
            return EditPlan(
                target: target, text: try content(ofExample: example, request), isNew: true, isWhole: true)
        }
        guard let found else {
            let others = names(request.directories)
            let meant = NameSuggestion.closest(to: name, among: others).map { "; did you mean '\($0)'?" } ?? ""
            throw CommandFailure(
                .failure,
                "there is no file of a pipeline '\(name)'\(meant)\nTo make one: freshetctl edit --new \(name)")
        }
        guard let text = try content(found) else {
            throw CommandFailure(.failure, "'\(found)' is a link to nothing")
        }
        guard request.isDropIn else {
            return EditPlan(
                target: target, text: text, source: found == target ? nil : found, isNew: found != target)
        }
        let dropIn = path(top, "pipelines/\(name).yaml.d/\(dropInName)")
        if EditedFile.isMask(dropIn) {
            throw CommandFailure(.failure, "'\(dropIn)' is a link to /dev/null; remove that first: rm \(dropIn)")
        }
        if let text = try content(dropIn) { return EditPlan(target: dropIn, text: text, source: found, isNew: false) }
        guard !EditedFile.isNamed(dropIn) else {
            throw CommandFailure(.failure, "'\(dropIn)' is a link to nothing")
        }
        return EditPlan(target: dropIn, text: Array(overlay(text, of: found).utf8), source: found, isNew: true)
    }

    /// Whether a text says nothing: comments and space alone.
    static func isEmpty(_ text: [UInt8]) -> Bool {
        text.split(separator: UInt8(ascii: "\n")).allSatisfy { line in
            let first = line.first { !isSpace($0) }
            return first == nil || first == UInt8(ascii: "#")
        }
    }

    static func isSpace(_ byte: UInt8) -> Bool {
        [UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\r"), UInt8(ascii: "\n")].contains(byte)
    }

    // MARK: Texts

    /// What a pipeline has at least.
    static func template(_ name: String) -> String {
        """
        # The pipeline '\(name)'. Save and leave the editor to have it checked and
        # installed; leave without saving, and nothing is made. Every key is in
        # freshet.pipeline(5); 'freshetctl edit --examples' lists other beginnings.
        description: What it is
        source:
          url: https://example.com/\(name).json
        refresh:
          every: 15min
        check:
          type: application/json
        cache:
          file: \(name).json

        """
    }

    /// Comments with what it is laid over.
    private static func overlay(_ text: [UInt8], of path: String) -> String {
        let lines = String(decoding: text, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
        return """
            # What stands here is laid over \(path): keys that are given replace those there, and the others
            # stay. Nothing is installed if there is nothing but comments.

            # \(path):
            \(lines.map { $0.isEmpty ? "#" : "# \($0)" }.joined(separator: "\n"))

            """
    }

    // MARK: Examples

    /// The examples that there are, by name.
    static func examples(in directories: [String]) -> [String: String] {
        var found: [String: String] = [:]
        for directory in directories {
            for name in EditedFile.names(in: directory) ?? [] where name.hasSuffix(".yaml") {
                let key = String(name.dropLast(".yaml".count))
                if found[key] == nil { found[key] = "\(directory)/\(name)" }
            }
        }
        return found
    }

    private static func content(ofExample example: String, _ request: Request) throws(CommandFailure) -> [UInt8] {
        let all = examples(in: request.examples)
        guard let path = all[example], let content = try content(path) else {
            let meant =
                NameSuggestion.closest(to: example, among: all.keys.sorted()).map { "; did you mean '\($0)'?" } ?? ""
            let rest =
                all.isEmpty
                ? "no examples are installed: looked in \(request.examples.joined(separator: ", "))"
                : "'freshetctl edit --examples' lists those that there are"
            throw CommandFailure(.failure, "there is no example '\(example)'\(meant)\n\(rest)")
        }
        return content
    }

    /// What an example is for: its first comment.
    static func summary(ofExample path: String) -> String {
        guard let content = try? content(path) else { return "" }
        let lines = String(decoding: content, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
        // The first may be for editors, and an empty comment after it.
        let comment = lines.drop { $0.hasPrefix("# yaml-language-server:") || $0 == "#" }
            .prefix { $0.hasPrefix("# ") }.map { $0.dropFirst(2) }.joined(separator: " ")
        // The first sentence.
        let words = comment.split(separator: " ")
        let end = words.firstIndex { $0.hasSuffix(".") } ?? words.endIndex - 1
        return words.isEmpty ? "" : words[...end].joined(separator: " ")
    }

    // MARK: Names

    private static func isName(_ name: String) -> Bool {
        let isWellFormed = name.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."):
                true
            default: false
            }
        }
        return isWellFormed && !name.isEmpty && !name.hasPrefix("-") && !name.hasPrefix(".") && name.utf8.count <= 64
    }

    private static func names(_ directories: [String]) -> [String] {
        directories.flatMap { EditedFile.names(in: path($0, "pipelines")) ?? [] }
            .filter { $0.hasSuffix(".yaml") && !$0.hasPrefix(".") }.map { String($0.dropLast(".yaml".count)) }
    }

    private static func content(_ path: String) throws(CommandFailure) -> [UInt8]? {
        do throws(EditFailure) {
            return try EditedFile.content(of: path)
        } catch {
            throw error.failure
        }
    }
}
