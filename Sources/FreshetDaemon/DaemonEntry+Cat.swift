import FreshetConfiguration
import FreshetControl
import FreshetSystemd
import Glibc

extension DaemonEntry {
    /// Prints the files of the configuration that count, each below its name, as `systemctl cat` does: of the daemon and
    /// of all pipelines, or of these pipelines. Needs no daemon, and judges nothing.
    package static func cat(_ names: [String], _ options: DaemonOptions, json: Bool) -> DaemonExit {
        let loader = Supervisor.loader(options)
        let selection: PipelineSelection
        do throws(PipelineSelection.TooManyPatterns) {
            selection = try PipelineSelection(names)
        } catch {
            let text =
                "the patterns have more than \(PipelineSelection.patternBytesLimit) bytes; use fewer or shorter ones"
            StandardStream.write("freshetd: \(text)\n", to: STDERR_FILENO)
            return .usage
        }
        let (parts, faults) = loader.parts { name in
            name.map { names.isEmpty || selection.contains($0) } ?? names.isEmpty
        }
        var status = DaemonExit.success
        func say(_ text: String) {
            StandardStream.write("freshetd: \(PlainText.escaping(text))\n", to: STDERR_FILENO)
        }
        func complain(_ text: String) {
            say(text)
            status = .failure
        }
        let isWritten = json ? StandardStream.answer(ControlJSON.text(of: Files(parts)) + "\n") : write(parts)
        if !isWritten { status = .failure }
        for part in parts {
            guard case .unreadable(let fault) = part.content else { continue }
            complain("\(part.file): \(fault.message)" + (fault.remedy.map { "; \($0)" } ?? ""))
        }
        for fault in faults where fault.severity == .error { complain(fault.text()) }
        let places = loader.searchPath.text
        // That there is nothing is what was asked for, and no failure.
        if names.isEmpty, parts.isEmpty, faults.isEmpty {
            say("there is no file of the configuration in \(places)")
        }
        let known = Set(parts.compactMap(\.pipeline))
        for name in names where PipelineSelection.ordered(known.sorted(), as: [name], by: \.self).isEmpty {
            let meant = NameSuggestion.closest(to: name, among: loader.pipelineNames())
            complain(
                "there is no file of a pipeline '\(name)' in \(places)"
                    + (meant.map { "; did you mean '\($0)'?" } ?? ""))
        }
        return status
    }

    /// Returns false if not all of it could be written, which is said.
    private static func write(_ parts: [ConfigurationPart]) -> Bool {
        var isFirst = true
        for part in parts {
            var bytes = Array("\(isFirst ? "" : "\n")# \(part.file)\n".utf8)
            isFirst = false
            switch part.content {
            case .bytes(let content):
                bytes += content
                // The next name begins a line.
                if let last = content.last, last != UInt8(ascii: "\n") { bytes.append(UInt8(ascii: "\n")) }
            case .masked: bytes += Array("# (masked: it is /dev/null, and hides what has its name below)\n".utf8)
            case .unreadable(let fault): bytes += Array("# (\(PlainText.escaping(fault.message)))\n".utf8)
            }
            guard StandardStream.answer(bytes[...]) else { return false }
        }
        return true
    }

    /// With `--json`.
    private struct Files: Encodable {
        struct File: Encodable {
            var file: String
            var pipeline: String?
            var text: String?
            var masked: Bool?
            var fault: String?
        }
        var files: [File]

        init(_ parts: [ConfigurationPart]) {
            files = parts.map { part in
                var file = File(file: part.file, pipeline: part.pipeline)
                switch part.content {
                case .bytes(let bytes): file.text = String(decoding: bytes, as: UTF8.self)
                case .masked: file.masked = true
                case .unreadable(let fault): file.fault = fault.message
                }
                return file
            }
        }
    }
}
