import FreshetCache
import FreshetEventLoop
import FreshetPipelines
import Logging

/// Published files that other programs remove while the daemon runs.
extension Supervisor {
    /// Watches the directory of the published files; nil: the system does not allow it, which is logged.
    func watchPublishedFiles(of cache: LocalCache) -> PublishedFileWatch? {
        do {
            return try PublishedFileWatch(loop, directory: cache.publishedDirectory) { [weak self] removal in
                self?.adopt { [weak self] in await self?.restoreFiles(after: removal) }
            }
        } catch {
            limiter.log(.fileUnwatched, [.error: .string("\(error)")])
            return nil
        }
    }

    private func restoreFiles(after removal: PublishedFileWatch.Removal) async {
        switch removal {
        case .files(let names):
            // Several files have a link and a stamp.
            await restoreFiles { names.contains($0) || names.contains($0 + ".stamp") }
        case .unknown:
            // The directory is watched before files are restored, so that no removal is missed.
            parts?.publishedFiles?.renew()
            await restoreFiles { _ in true }
            // If the directory above was removed too, a restored file or the next commit makes it again.
            parts?.publishedFiles?.renew()
        }
    }

    /// Publishes the current generations again whose files are missing. If the generation is not intact, Freshet fetches
    /// the content again.
    private func restoreFiles(where isMissing: (_ file: String) -> Bool) async {
        for runner in pipelines.values.map(\.runner) where isMissing(runner.definition.cache.file) {
            if await runner.restoreCopy() { fetchAgain(runner.name) }
        }
    }
}
