import FreshetControl
import Glibc

/// The file of an edit and its initial text, found before anything is changed.
struct EditPlan: Hashable {
    /// The file that is made or replaced.
    var target: String
    /// The initial text.
    var text: [UInt8]
    /// The file of lower precedence that the target is a copy of, or the file of a drop-in; nil if there is none.
    var source: String?
    /// Whether the target does not exist yet.
    var isNew: Bool
    /// Whether the initial text is an example, which may be saved unchanged.
    var isExample = false

    /// The arguments of `edit`.
    struct Request: Hashable {
        var name: String
        var kind = Kind.pipeline
        var isNew = false
        var example: String?
        var isDropIn = false
        /// The directories of the configuration, in the order of precedence.
        var directories: [String]
        /// The directories of the examples.
        var examples: [String] = []
    }

    /// What a file defines.
    enum Kind: String, Hashable {
        case pipeline
        /// A hook of several pipelines.
        case hook

        /// The directory of the files, below a directory of the configuration.
        var directory: String { "\(rawValue)s" }
        /// The option of `edit` that chooses it.
        fileprivate var option: String { self == .hook ? "--hook " : "" }
    }

    /// The system's search path for configuration.
    static let systemDirectories = ["/etc/freshet", "/run/freshet-config", "/usr/lib/freshet"]
    static let dropInName = "override.yaml"

    /// The path of a name below a directory, exactly as freshetd prints it in diagnostics.
    static func path(_ directory: String, _ name: String) -> String {
        var directory = directory[...]
        while directory.count > 1, directory.hasSuffix("/") { directory = directory.dropLast() }
        return directory == "." ? name : directory == "/" ? "/" + name : "\(directory)/\(name)"
    }

    /// Finds the file to edit.
    ///
    /// - Parameter checkTrust: throws for a path that the caller must neither read nor replace. It is called before
    ///   anything at the path, or behind a link at the path, is read.
    static func find(
        _ request: Request, checkTrust: (String) throws(CommandFailure) -> Void = { _ in }
    ) throws(CommandFailure) -> EditPlan {
        let (name, kind) = (request.name, request.kind)
        guard isName(name), let top = request.directories.first else {
            throw CommandFailure(
                .failure,
                "'\(name)' is not a \(kind)'s name: use letters, digits, '-', '_' and '.', and begin with a letter, a "
                    + "digit or '_'")
        }
        let target = path(top, "\(kind.directory)/\(name).yaml")
        let places: [String] = request.directories.map { path($0, "\(kind.directory)/\(name).yaml") }
        // The search stops at the first name: the paths after it are neither read nor written.
        try checkTrust(target)
        var found: String?
        for place in places where found == nil {
            if place != target { try checkTrust(place) }
            if EditedFile.existsAnything(at: place) { found = place }
        }
        if let found, EditedFile.isMask(found) {
            throw CommandFailure(
                .failure, "'\(name)' is masked: '\(found)' is a link to /dev/null; remove that first: rm \(found)")
        }
        if request.isNew {
            guard found == nil else {
                throw CommandFailure(
                    .failure, "there is a \(kind) '\(name)' already: '\(found ?? "")'; edit it without --new")
            }
            guard let example = request.example else {
                return EditPlan(target: target, text: Array(template(name, kind).utf8), isNew: true)
            }
            return EditPlan(
                target: target, text: try content(ofExample: example, request), isNew: true, isExample: true)
        }
        guard let found else {
            let others = names(kind, request.directories)
            let meant = NameSuggestion.closest(to: name, among: others).map { "; did you mean '\($0)'?" } ?? ""
            throw CommandFailure(
                .failure,
                "there is no file of a \(kind) '\(name)'\(meant)\n"
                    + "To make one: freshetctl edit \(kind.option)--new \(name)")
        }
        guard let text = try content(found) else {
            throw CommandFailure(.failure, "'\(found)' is a link to nothing")
        }
        guard request.isDropIn else {
            return EditPlan(
                target: target, text: text, source: found == target ? nil : found, isNew: found != target)
        }
        let dropIn = path(top, "\(kind.directory)/\(name).yaml.d/\(dropInName)")
        try checkTrust(dropIn)
        if EditedFile.isMask(dropIn) {
            throw CommandFailure(.failure, "'\(dropIn)' is a link to /dev/null; remove that first: rm \(dropIn)")
        }
        if let text = try content(dropIn) { return EditPlan(target: dropIn, text: text, source: found, isNew: false) }
        guard !EditedFile.existsAnything(at: dropIn) else {
            throw CommandFailure(.failure, "'\(dropIn)' is a link to nothing")
        }
        return EditPlan(target: dropIn, text: Array(overlay(text, of: found).utf8), source: found, isNew: true)
    }

    /// Whether a text has only comments and white space.
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

    /// The minimal file of a pipeline, or of a hook.
    static func template(_ name: String, _ kind: Kind) -> String {
        if kind == .hook { return hookTemplate(name) }
        return """
            # The pipeline '\(name)'. When you save and leave the editor, this file is
            # checked and installed; if you do not save, nothing is installed. The keys are
            # in freshet.pipeline(5); 'freshetctl edit --examples' lists examples.
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

    private static func hookTemplate(_ name: String) -> String {
        """
        # The hook '\(name)': a program that runs once for a burst of changes of several
        # pipelines. When you save and leave the editor, this file is checked and
        # installed; if you do not save, nothing is installed. The keys are in
        # freshet.pipeline(5); 'freshetctl edit --hook --examples' lists examples.
        description: What it does
        on-change-of: [first, second]
        exec: [/usr/local/lib/freshet/\(name)]

        """
    }

    /// The initial text of a drop-in: comments with the file that it changes.
    private static func overlay(_ text: [UInt8], of path: String) -> String {
        let lines = String(decoding: text, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
        return """
            # Keys in this file replace the same keys of \(path); all other keys stay.
            # A file with only comments is not installed.

            # \(path):
            \(lines.map { $0.isEmpty ? "#" : "# \($0)" }.joined(separator: "\n"))

            """
    }

    // MARK: Examples

    /// The paths of the examples, by name.
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
                : "'freshetctl edit \(request.kind.option)--examples' lists the examples"
            throw CommandFailure(.failure, "there is no example '\(example)'\(meant)\n\(rest)")
        }
        return content
    }

    /// The purpose of an example: the first sentence of its first comment.
    static func summary(ofExample path: String) -> String {
        guard let content = try? content(path) else { return "" }
        let lines = String(decoding: content, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
        // The first line may be for editors, with an empty comment after it.
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

    static func names(_ kind: Kind, _ directories: [String]) -> [String] {
        directories.flatMap { EditedFile.names(in: path($0, kind.directory)) ?? [] }
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
