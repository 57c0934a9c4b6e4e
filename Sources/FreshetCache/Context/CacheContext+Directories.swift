/// Directories, and objects that the cache did not make. Symbolic links are not followed.
extension CacheContext {
    func status(_ path: String) throws(CacheError) -> FileStatus? {
        try onFiles { (files) throws(SystemCallError) in try files.status(path) }
    }

    /// Whether the path itself is a directory; a symbolic link to a directory is not one.
    func isDirectory(_ path: String) throws(CacheError) -> Bool { try status(path)?.isDirectory == true }

    /// Moves an object aside that is in the place of a directory.
    ///
    /// - Returns: whether the directory exists.
    func isDirectory(_ path: String, orMoveAside files: any FileSystem) throws(SystemCallError) -> Bool {
        guard let status = try files.status(path) else { return false }
        if !status.isDirectory { try moveToStrays(path, files) }
        return status.isDirectory
    }

    /// Makes the directories with their modes, and flushes their names.
    func makeDirectories(for pipeline: String?, _ files: any FileSystem) throws(SystemCallError) {
        if try files.status(layout.cacheDirectory) == nil {
            _ = try files.makeDirectory(layout.cacheDirectory, mode: CacheLayout.cacheDirectoryMode)
        }
        let madeCurrent = try files.makeDirectory(layout.current, mode: CacheLayout.currentMode)
        let madeGenerations = try files.makeDirectory(layout.generations, mode: CacheLayout.generationsMode)
        if madeCurrent || madeGenerations { try files.synchronizeDirectory(layout.cacheDirectoryItself) }
        if let pipeline { try makeGenerations(of: pipeline, files) }
    }

    /// Makes the directory of a new pipeline's generations, whose parents usually exist.
    func makeDirectories(ofNew pipeline: String, _ files: any FileSystem) throws(SystemCallError) {
        do throws(SystemCallError) {
            try makeGenerations(of: pipeline, files)
        } catch  where error.isMissing {
            try makeDirectories(for: pipeline, files)
        }
    }

    private func makeGenerations(of pipeline: String, _ files: any FileSystem) throws(SystemCallError) {
        let failures = generationsFlush.failures
        guard try files.makeDirectory(layout.generations(of: pipeline), mode: CacheLayout.generationsMode) else {
            return
        }
        try generationsFlush.perform(since: failures) { () throws(SystemCallError) in
            try files.synchronizeDirectory(layout.generations)
        }
    }

    /// Removes a file that the cache made; any other object at this path is moved aside.
    func remove(_ path: String) throws(CacheError) {
        try onFiles { (files) throws(SystemCallError) in
            if path.hasPrefix(layout.sets + "/"), try files.status(path)?.isDirectory == true {
                return try files.removeFlatDirectory(path)
            }
            guard try files.status(path)?.isRegularFile == true else { return try moveToStrays(path, files) }
            try files.unlink(path)
        }
    }

    /// Removes the directory of a generation, or an unfinished directory. If the object is not a directory, it is
    /// foreign and is moved aside.
    func removeSet(_ path: String, _ files: any FileSystem) throws(SystemCallError) {
        if try isDirectory(path, orMoveAside: files) { try files.removeFlatDirectory(path) }
    }

    /// Moves an object of any kind aside, unchanged.
    func moveToStrays(_ path: String) throws(CacheError) {
        try onFiles { (files) throws(SystemCallError) in try moveToStrays(path, files) }
    }

    func moveToStrays(_ path: String, _ files: any FileSystem) throws(SystemCallError) {
        guard let status = try files.status(path) else { return }
        _ = try files.makeDirectory(layout.strays, mode: CacheLayout.generationsMode)
        let name = path.split(separator: "/").last ?? ""
        // No other stray has this inode, so the name is free or belongs to the same object.
        try files.rename(path, to: layout.strays + "/\(status.identity.inode)-\(name.prefix(200))")
    }
}
