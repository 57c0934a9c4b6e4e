import FreshetCache
import FreshetControl
import FreshetSystemd
import Glibc

/// What the command line asks of an examination of the cache.
package struct ExaminationRequest: Sendable {
    /// Mends what can be.
    package var repairs = false
    package var json = false
    /// Says nothing but what was found, and errors.
    package var isQuiet = false

    package init() {}
}

extension DaemonEntry {
    /// Examines the cache of a daemon that does not run.
    package static func examine(_ request: ExaminationRequest, _ options: DaemonOptions) -> DaemonExit {
        do {
            let directories = try Supervisor.directories(options)
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
            // After a gap, what follows would only hide it.
            guard !request.json, isWritten else { return }
            let lines = part.findings.flatMap(\.lines).map { PlainText.escaping($0) + "\n" }
            isWritten = StandardStream.answer(lines.joined())
        }
        let opened = try LocalCache.openToExamine(
            cacheDirectory: cache, stateDirectory: state, mends: request.repairs)
        add(ControlMessage.Examined(opened.examination, of: .index))
        if let cache = opened.cache {
            let strays = try cache.examine(.strays, mends: request.repairs)
            add(ControlMessage.Examined(strays, of: .strays))
            for name in try cache.examinable() {
                let step = ExaminationStep.pipeline(name)
                add(ControlMessage.Examined(try cache.examine(step, mends: request.repairs), of: step))
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
