import FreshetConfiguration
import FreshetControl
import FreshetSystemd
import Glibc

extension DaemonEntry {
    /// Prints the configuration files that take effect, each below its name, as `systemctl cat` does. Without names it
    /// prints the files of the daemon, of all pipelines and of all hooks of several pipelines. It needs no running daemon and does not validate the files.
    package static func cat(_ names: [String], _ options: DaemonOptions, json: Bool) -> DaemonExit {
        let loader = ConfigurationLocation.loader(options)
        let selection: PipelineSelection
        do throws(PipelineSelection.TooManyPatterns) {
            selection = try PipelineSelection(names)
        } catch {
            let text =
                "the patterns have more than \(PipelineSelection.patternBytesLimit) bytes; use fewer or shorter ones"
            StandardStream.write("freshetd: \(text)\n", to: STDERR_FILENO)
            return .usage
        }
        let (parts, errors) = loader.parts { name in
            name.map { names.isEmpty || selection.contains($0) } ?? names.isEmpty
        }
        var status = DaemonExit.success
        func log(_ text: String) {
            StandardStream.write("freshetd: \(PlainText.escaping(text))\n", to: STDERR_FILENO)
        }
        func fail(_ text: String) {
            log(text)
            status = .failure
        }
        let isWritten = json ? StandardStream.answer(ControlJSON.text(of: Files(parts)) + "\n") : write(parts)
        if !isWritten { status = .failure }
        for part in parts {
            guard case .unreadable(let error) = part.content else { continue }
            fail("\(part.file): \(error.message)" + (error.remedy.map { "; \($0)" } ?? ""))
        }
        for error in errors where error.severity == .error { fail(error.text()) }
        let searchPath = loader.searchPath.text
        // An empty configuration is not a failure.
        if names.isEmpty, parts.isEmpty, errors.isEmpty {
            log("there is no configuration file in \(searchPath)")
        }
        let known = Set(parts.compactMap(\.pipeline))
        for name in names where PipelineSelection.ordered(known.sorted(), as: [name], by: \.self).isEmpty {
            let suggestion = NameSuggestion.closest(to: name, among: loader.pipelineNames())
            fail(
                "there is no file of a pipeline '\(name)' in \(searchPath)"
                    + (suggestion.map { "; did you mean '\($0)'?" } ?? ""))
        }
        return status
    }

    /// Returns false if standard output did not take everything; an error message has been written then.
    private static func write(_ parts: [ConfigurationPart]) -> Bool {
        var isFirst = true
        for part in parts {
            var bytes = Array("\(isFirst ? "" : "\n")# \(part.file)\n".utf8)
            isFirst = false
            switch part.content {
            case .bytes(let content):
                bytes += content
                // The next file name starts on a new line.
                if let last = content.last, last != UInt8(ascii: "\n") { bytes.append(UInt8(ascii: "\n")) }
            case .masked:
                bytes += Array("# (masked: a link to /dev/null hides the lower-ranking files of this name)\n".utf8)
            case .unreadable(let error): bytes += Array("# (\(PlainText.escaping(error.message)))\n".utf8)
            }
            guard StandardStream.answer(bytes[...]) else { return false }
        }
        return true
    }

    /// The output of `--json`.
    private struct Files: Encodable {
        struct File: Encodable {
            var file: String
            var pipeline: String?
            var hook: String?
            var text: String?
            var masked: Bool?
            var error: String?
        }
        var files: [File]

        init(_ parts: [ConfigurationPart]) {
            files = parts.map { part in
                var file = File(file: part.file, pipeline: part.pipeline, hook: part.hook)
                switch part.content {
                case .bytes(let bytes): file.text = String(decoding: bytes, as: UTF8.self)
                case .masked: file.masked = true
                case .unreadable(let error): file.error = error.message
                }
                return file
            }
        }
    }
}
