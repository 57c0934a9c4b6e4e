import FreshetCache
import FreshetEventLoop
import FreshetPipelines
import Logging

/// Published files that other programs remove while the daemon runs.
extension Supervisor {
    /// Watches the directory of the published files.
    func watchPublishedFiles() {
        guard let directory = parts?.cache.publishedDirectory else { return }
        do {
            publishedFileWatch = try PublishedFileWatch(loop, directory: directory) { [weak self] removal in
                self?.adopt { [weak self] in await self?.restoreFiles(after: removal) }
            }
        } catch {
            limiter.log(.fileUnwatched, [.error: .string("\(error)")])
        }
    }

    private func restoreFiles(after removal: PublishedFileWatch.Removal) async {
        switch removal {
        case .files(let names):
            // Several files have a link and a stamp.
            await restoreFiles { names.contains($0) || names.contains($0 + ".stamp") }
        case .unknown(let directoryIsGone):
            await restoreFiles { _ in true }
            guard directoryIsGone, !isEnding else { return }
            watchPublishedFiles()
            // Some may have been removed again before the new directory was watched.
            await restoreFiles { _ in true }
        }
    }

    /// Publishes the current generations again whose files are missing. If the generation is not intact, Freshet fetches
    /// the content again.
    private func restoreFiles(where isMissing: (_ file: String) -> Bool) async {
        for runner in pipelines.values.map(\.runner) where isMissing(runner.definition.cache.file) {
            if await runner.restoreCopy() { lost(runner.name) }
        }
    }
}
