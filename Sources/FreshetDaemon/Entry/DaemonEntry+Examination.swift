import FreshetCache
import FreshetControl
import FreshetSystemd
import Glibc

/// The options of a cache examination on the command line.
package struct ExaminationRequest: Sendable {
    /// Repairs what can be repaired.
    package var repairs = false
    package var json = false
    /// Prints only findings and errors.
    package var isQuiet = false

    package init() {}
}

extension DaemonEntry {
    /// Examines the cache while no daemon uses it.
    package static func examine(_ request: ExaminationRequest, _ options: DaemonOptions) -> DaemonExit {
        do {
            let directories = try DaemonDirectories.find(options)
            return try examine(request, cache: directories.cache, state: directories.state)
        } catch {
            StandardStream.write("freshetd: \(PlainText.escaping("\(error)"))\n", to: STDERR_FILENO)
            return switch error as? CacheError {
            case .stateLocked: .tryLater
            case .fileSystem(let error) where [EACCES, EPERM].contains(error.errno): .notPermitted
            default: .failure
            }
        }
    }

    private static func examine(
        _ request: ExaminationRequest, cache: String, state: String
    ) throws(CacheError) -> DaemonExit {
        var report = ControlMessage.Examined()
        var isWritten = true
        func add(_ part: ControlMessage.Examined) {
            report.add(part)
            // After a failed write, further output would hide the gap.
            guard !request.json, isWritten else { return }
            let lines = part.findings.flatMap(\.lines).map { PlainText.escaping($0) + "\n" }
            isWritten = StandardStream.answer(lines.joined())
        }
        let opened = try LocalCache.openToExamine(
            cacheDirectory: cache, stateDirectory: state, repairs: request.repairs)
        add(ControlMessage.Examined(opened.examination, of: .index))
        if let cache = opened.cache {
            let strays = try cache.checker.examine(.strays, repairs: request.repairs)
            add(ControlMessage.Examined(strays, of: .strays))
            for name in try cache.checker.examinable() {
                let step = ExaminationStep.pipeline(name)
                add(ControlMessage.Examined(try cache.checker.examine(step, repairs: request.repairs), of: step))
            }
            cache.flush()
        }
        if request.json {
            isWritten = StandardStream.answer(ControlJSON.text(of: report) + "\n")
        } else if !request.isQuiet {
            StandardStream.write(report.total + "\n", to: STDERR_FILENO)
        }
        return report.left == 0 && isWritten ? .success : .failure
    }
}
