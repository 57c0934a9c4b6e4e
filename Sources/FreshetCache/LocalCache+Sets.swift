/// Pipelines that keep several files: beside the generation that is committed, all files as one JSON object, stands a
/// directory that has them apart, and a link leads readers to it.
///
/// Of a commit they are two steps more: the directory is there, with all its files and on disk, before anything else of
/// the generation is, and the link is renamed before the stamp is. What is in `current/` and in the index is decided by the
/// stamp alone, as of any other file; the link follows it. The caller of each of these holds the pipeline's lock.
extension LocalCache {
    // MARK: Writing

    /// Makes the directory of a generation, or makes whole the one that is there.
    ///
    /// - Parameter path: a file with the generation's content, mode and group.
    func makeSet(_ content: StoredContent, of pipeline: String, from path: String) throws(CacheError) {
        let (bundle, status) = try bundle(at: path)
        let directory = layout.set(content, of: pipeline)
        let isThere = try onFiles { (files) throws(SystemCallError) in
            try self.makeSetDirectories(for: pipeline, files)
            return try self.isDirectory(directory, orTakeAway: files)
        }
        if isThere { return try mendSet(directory, of: pipeline, bundle, status) }
        let token = makeToken()
        defer { release(token) }
        let temporary = layout.temporarySet(token, of: pipeline)
        try onFiles { (files) throws(SystemCallError) in
            // An earlier process may have left one.
            try self.removeSet(temporary, files)
            _ = try files.makeDirectory(temporary, mode: CacheLayout.setMode)
            do throws(SystemCallError) {
                for member in bundle.members {
                    try files.write(
                        bundle.content(of: member), to: temporary + "/" + member.name, mode: status.mode,
                        group: status.group)
                }
                try files.synchronizeDirectory(temporary)
                try files.rename(temporary, to: directory)
            } catch {
                try? files.removeFlatDirectory(temporary)
                throw error
            }
            try files.synchronizeDirectory(self.layout.sets(of: pipeline))
        }
    }

    /// Makes the directory of a generation whole in its place, file by file: who reads there finds the generation's own
    /// content at any moment. What else is there is moved aside.
    private func mendSet(
        _ directory: String, of pipeline: String, _ bundle: FileBundle, _ status: FileStatus
    ) throws(CacheError) {
        let faults = try faults(ofSet: directory, bundle, status)
        try onFiles { (files) throws(SystemCallError) in
            // Gives it its mode again.
            _ = try files.makeDirectory(directory, mode: CacheLayout.setMode)
        }
        let token = makeToken()
        defer { release(token) }
        for (name, member) in faults {
            let path = directory + "/" + name
            guard let member else {
                if CacheLayout.isTemporary(name) { try remove(path) } else { try takeAway(path) }
                continue
            }
            if try isDirectory(path) { try takeAway(path) }
            let temporary = layout.temporaryFile(token, in: directory)
            try onFiles { (files) throws(SystemCallError) in
                try files.unlink(temporary)
                try files.write(
                    bundle.content(of: member), to: temporary, mode: status.mode, group: status.group)
                try files.rename(temporary, to: path)
            }
        }
        // Also if nothing was wrong: whoever made it may not have come as far.
        try onFiles { (files) throws(SystemCallError) in
            try files.synchronizeDirectory(directory)
            try files.synchronizeDirectory(self.layout.sets(of: pipeline))
        }
    }

    /// The names in a directory that are not as the generation has them, with what should be there; nil: nothing.
    private func faults(
        ofSet directory: String, _ bundle: FileBundle, _ status: FileStatus
    ) throws(CacheError) -> [(name: String, member: FileBundle.Member?)] {
        var faults: [(name: String, member: FileBundle.Member?)] = []
        for member in bundle.members {
            let path = directory + "/" + member.name
            let found = try onFiles { (files) throws(SystemCallError) in try files.status(path) }
            guard let found, found.isRegularFile, found.mode == status.mode, found.group == status.group,
                try holds(bundle.content(of: member), path)
            else {
                faults.append((member.name, member))
                continue
            }
        }
        let names = Set(bundle.members.map(\.name))
        for entry in try onFiles({ (files) throws(SystemCallError) in try files.list(directory) })
        where !names.contains(entry.name) {
            faults.append((entry.name, nil))
        }
        return faults
    }

    private func holds(_ content: [UInt8], _ path: String) throws(CacheError) -> Bool {
        var (place, isSame) = (0, true)
        let isThere = try fileSystem.readFile(path) { (bytes) throws(CacheError) in
            let rest = content.dropFirst(place)
            isSame = isSame && bytes.count <= rest.count && rest.prefix(bytes.count).elementsEqual(bytes)
            place += bytes.count
        }
        return isThere && isSame && place == content.count
    }

    private func bundle(at path: String) throws(CacheError) -> (bundle: FileBundle, status: FileStatus) {
        let status = try onFiles { (files) throws(SystemCallError) in try files.status(path) }
        guard let status, status.isRegularFile else { throw .unreadable }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Int(clamping: status.identity.size))
        let isThere = try fileSystem.readFile(path) { (piece) throws(CacheError) in bytes += piece }
        guard isThere else { throw .unreadable }
        return (try FileBundle(bytes), status)
    }

    private func makeSetDirectories(for pipeline: String, _ files: any FileSystem) throws(SystemCallError) {
        if try files.status(layout.cacheDirectory) == nil { try makeDirectories(for: pipeline, files) }
        for (path, parent) in [
            (layout.sets, layout.cacheDirectoryItself), (layout.sets(of: pipeline), layout.sets),
        ] {
            _ = try isDirectory(path, orTakeAway: files)
            if try files.makeDirectory(path, mode: CacheLayout.setsMode) { try files.synchronizeDirectory(parent) }
        }
    }

    /// Moves aside what is no directory where one should be; a link is never followed.
    ///
    /// - Returns: whether one is there.
    private func isDirectory(_ path: String, orTakeAway files: any FileSystem) throws(SystemCallError) -> Bool {
        guard let status = try files.status(path) else { return false }
        if !status.isDirectory { try takeAway(path, files) }
        return status.isDirectory
    }

    /// Removes the directory of a generation, or one that was being written. What is none is somebody's, and is moved aside.
    func removeSet(_ path: String, _ files: any FileSystem) throws(SystemCallError) {
        if try isDirectory(path, orTakeAway: files) { try files.removeFlatDirectory(path) }
    }

    /// Whether the generation that a file of the cache is of has its directory already; nil: it is of none.
    func hasSet(_ path: String?, of pipeline: String) throws(CacheError) -> Bool {
        guard let name = path?.split(separator: "/").last, let content = StoredContent(name: String(name)) else {
            return false
        }
        return try isDirectory(layout.set(content, of: pipeline))
    }

    // MARK: The link

    /// Has the link lead to a generation's directory. A directory in its place is somebody's, and is moved aside.
    ///
    /// - Returns: whether it did not before.
    func showSet(
        _ content: StoredContent, of pipeline: String, at link: String, _ files: any FileSystem
    ) throws(SystemCallError) -> Bool {
        let path = layout.reader(link)
        let target = CacheLayout.target(content, of: pipeline)
        if try files.linkTarget(path) == target { return false }
        if try files.status(path)?.isDirectory == true { try takeAway(path, files) }
        let token = makeToken()
        defer { release(token) }
        try files.replace(path, withSymbolicLinkTo: target, by: layout.readerTemporary(token))
        return true
    }

    /// The generation's name that the link leads to; nil: none of this pipeline.
    func shownSet(of pipeline: String, at link: String) throws(SystemCallError) -> String? {
        let prefix = CacheLayout.targetPrefix(of: pipeline)
        guard let target = try fileSystem.linkTarget(layout.reader(link)), target.hasPrefix(prefix) else { return nil }
        return String(target.dropFirst(prefix.utf8.count))
    }

    /// Whether the link leads to a directory of what is offered; true of one file too.
    func isSetShown(_ offer: IndexedPublication) throws(CacheError) -> Bool {
        guard let link = offer.pipeline.link else { return true }
        let (content, pipeline) = (offer.generation.content, offer.pipeline.name)
        return try onFiles { (files) throws(SystemCallError) in
            guard try self.shownSet(of: pipeline, at: link) == content.name else { return false }
            for path in [self.layout.sets(of: pipeline), self.layout.set(content, of: pipeline)] {
                guard try files.status(path)?.isDirectory == true else { return false }
            }
            return true
        }
    }

    /// Has directory and link agree with the stamp, which holds what is offered. For one file there is nothing to do.
    ///
    /// - Parameter verifiesAll: look at all files of the directory.
    /// - Returns: whether they did not.
    @discardableResult
    func agreeSet(with offer: IndexedPublication, verifiesAll: Bool = false) throws(CacheError) -> Bool {
        guard let link = offer.pipeline.link, !offer.isWithdrawn else { return false }
        let isShown = try isSetShown(offer)
        if isShown, !verifiesAll { return false }
        let (content, pipeline) = (offer.generation.content, offer.pipeline.name)
        let stamp = layout.reader(offer.file)
        var isThere = try isDirectory(layout.sets(of: pipeline))
        if isThere { isThere = try isDirectory(layout.set(content, of: pipeline)) }
        if verifiesAll || !isThere { try makeSet(content, of: pipeline, from: stamp) }
        return try onFiles { (files) throws(SystemCallError) in
            guard try self.showSet(content, of: pipeline, at: link, files) else { return !isThere }
            try files.synchronizeDirectory(self.layout.current)
            return true
        }
    }

    /// The same, after index and stamp were made to agree.
    ///
    /// - Returns: the generation whose directory or link had to be mended; nil: none.
    func reconcileSet(of pipeline: String, verifiesAll: Bool) throws(CacheError) -> Int64? {
        let (row, offer) = try withIndex { (index) throws(SQLiteError) in
            (try index.pipeline(pipeline), try index.offer(of: pipeline))
        }
        guard let row, let link = row.link, let file = row.file else { return nil }
        if row.withdrawnAt != nil {
            try hideSet(of: pipeline, at: link)
            return nil
        }
        let status = try onFiles { (files) throws(SystemCallError) in try files.status(self.layout.reader(file)) }
        guard let offer else {
            // The first commit has come as far as the link, and no further.
            if status == nil { try hideSet(of: pipeline, at: link) }
            return nil
        }
        guard status?.identity == offer.generation.identity else { return nil }
        do throws(CacheError) {
            return try agreeSet(with: offer, verifiesAll: verifiesAll) ? offer.generation.content.number : nil
        } catch .noBundle {
            // The next commit has what it should be.
            return nil
        }
    }

    func hideSet(of pipeline: String, at link: String) throws(CacheError) {
        try onFiles { (files) throws(SystemCallError) in
            guard try self.shownSet(of: pipeline, at: link) != nil else { return }
            try files.unlink(self.layout.reader(link))
            try files.synchronizeDirectory(self.layout.current)
        }
    }

    // MARK: Removing

    /// Removes the directories of generations that are not kept any more.
    ///
    /// - Parameter previous: the name of the one that readers were led to before: somebody may have gone there.
    func sweepSets(of row: IndexedPipeline, previous: String?) {
        // What stays now is removed after a later commit.
        guard let kept = try? withIndex({ (index) throws(SQLiteError) in try index.generations(of: row.id) }),
            let entries = try? fileSystem.list(layout.sets(of: row.name))
        else { return }
        let names = Set(kept.map(\.content.name) + [previous].compactMap(\.self))
        for entry in entries where !names.contains(entry.name) {
            guard CacheLayout.isTemporary(entry.name) || StoredContent(name: entry.name) != nil else { continue }
            try? removeSet(layout.sets(of: row.name) + "/" + entry.name, fileSystem)
        }
    }

    /// Removes, at the start, what an earlier process was writing. What cannot be removed is in nobody's way.
    func removeUnfinishedSets() {
        for pipeline in (try? fileSystem.list(layout.sets)) ?? [] {
            let directory = layout.sets(of: pipeline.name)
            for entry in (try? fileSystem.list(directory)) ?? [] where CacheLayout.isTemporary(entry.name) {
                try? remove(leftover: entry.name, in: directory, of: nil)
            }
        }
    }

    /// Takes away the link of a pipeline that goes, before its content does.
    func removeLink(of row: IndexedPipeline) throws(CacheError) {
        guard let link = row.link else { return }
        try hideSet(of: row.name, at: link)
    }

    /// Removes all directories of a pipeline; what is none of the cache's is moved aside.
    func removeSets(of pipeline: String) throws(CacheError) {
        let directory = layout.sets(of: pipeline)
        try onFiles { (files) throws(SystemCallError) in
            guard try self.isDirectory(directory, orTakeAway: files) else { return }
            for entry in try files.list(directory) {
                let path = directory + "/" + entry.name
                if StoredContent(name: entry.name) != nil || CacheLayout.isTemporary(entry.name) {
                    try self.removeSet(path, files)
                } else {
                    try self.takeAway(path, files)
                }
            }
            try files.removeDirectory(directory)
            if try files.status(directory) != nil {
                throw SystemCallError(call: "rmdir", path: directory, errno: SystemCallError.notEmpty)
            }
        }
    }

    /// Takes away what a pipeline has left of sets that it has no more, or has elsewhere: links, stamps and directories.
    func removeFormerSets(of row: IndexedPipeline) throws(CacheError) {
        for link in row.formerSets where link != row.link {
            let stamp = link + CacheLayout.stampSuffix
            let (ofLink, ofStamp) = try withIndex { (index) throws(SQLiteError) in
                (try index.owner(of: link), try index.owner(of: stamp))
            }
            // As a file it may be the pipeline's own by now.
            if ofLink == nil || ofLink == row.name { try hideSet(of: row.name, at: link) }
            guard ofStamp == nil else { continue }
            try onFiles { (files) throws(SystemCallError) in
                let path = self.layout.reader(stamp)
                if try files.status(path)?.isRegularFile == true { try files.unlink(path) }
            }
        }
        if !row.isSet { try removeSets(of: row.name) }
        try withIndex { (index) throws(SQLiteError) in try index.forgetFormerSets(row.formerSets, of: row.name) }
    }

    /// Removes content that was forgotten since it was of the other kind.
    func removeForgotten(_ forgotten: [OrphanedContent]) {
        for content in forgotten {
            // What stays is found at the next start.
            for generation in content.generations {
                try? fileSystem.unlink(layout.generation(generation, of: content.pipeline))
            }
            if let refused = content.refused { try? fileSystem.unlink(layout.refused(refused, of: content.pipeline)) }
        }
    }

    // MARK: Examining

    /// Compares link and directory with the stamp, which is whole.
    func lookAtSet(of row: IndexedPipeline, _ examination: inout CacheExamination) throws(CacheError) {
        guard let link = row.link else { return }
        let directory = layout.sets(of: row.name)
        // One that is no directory is a stray of no pipeline's; a link that leads to one is not followed.
        let isOwn = try isDirectory(directory)
        for entry in try onFiles({ (files) throws(SystemCallError) in try files.list(directory) }) {
            let path = directory + "/" + entry.name
            if CacheLayout.isTemporary(entry.name) {
                if !isLiving(entry.name) { examination.add(CacheFinding(.unfinished, of: row.name, path: path)) }
            } else if StoredContent(name: entry.name) == nil {
                examination.add(CacheFinding(.stray, of: row.name, path: path))
            }
        }
        let known = try withIndex { (index) throws(SQLiteError) in try index.offer(of: row.name) }
        guard let offer = known else { return }
        let content = offer.generation.content
        var finding = CacheFinding(.setDamaged, of: row.name, generation: content.number, path: layout.reader(link))
        let shown = try onFiles { (_) throws(SystemCallError) in try self.shownSet(of: row.name, at: link) }
        if offer.isWithdrawn {
            finding.detail = "the copy is withdrawn"
            if shown != nil { examination.add(finding) }
            return
        }
        // Under a former name readers have link and stamp until the next commit.
        let stamp = layout.reader(offer.file)
        guard try onFiles({ (files) throws(SystemCallError) in try files.status(stamp) }) != nil else { return }
        if shown != content.name {
            finding.detail = "the link does not lead there"
            examination.add(finding)
        }
        let (bundle, status): (FileBundle, FileStatus)
        do throws(CacheError) {
            (bundle, status) = try self.bundle(at: stamp)
        } catch .noBundle(let fault) {
            finding.detail = "the copy is not several files, and the next run makes it anew: \(fault)"
            return examination.add(finding)
        }
        finding.path = layout.set(content, of: row.name)
        guard isOwn, try isDirectory(finding.path) else {
            finding.detail = "the directory is gone"
            return examination.add(finding)
        }
        for (name, member) in try faults(ofSet: finding.path, bundle, status) {
            var fault = finding
            fault.path += "/" + name
            fault.detail = member == nil ? "it is no file of the generation" : nil
            examination.add(fault)
        }
    }

    /// Takes away what is no link of the cache's in the place of one.
    func clearLink(of row: IndexedPipeline) throws(CacheError) {
        guard let link = row.link else { return }
        let path = layout.reader(link)
        let isOurs = try onFiles { (files) throws(SystemCallError) in
            try files.linkTarget(path)?.hasPrefix(CacheLayout.targetPrefix(of: row.name)) == true
        }
        if !isOurs { try takeAway(path) }
    }
}
