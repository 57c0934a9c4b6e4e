/// Loads a collection page by page: some pages at the start, then one page at each output of a signal.
///
/// ```
/// signal                        --s-----ss-------s-s----
/// paginated(by:initially: 1)    p---q-----r---------(s|)    each page takes two frames, s is the last one
/// ```
///
/// **Meaning.** The first `initially` pages are loaded one after the other, without an output of the signal. Then the
/// sequence is dormant: any number of pending outputs loads one page. Outputs between the start of a page's load and
/// its delivery, that is when the consumer takes it, are dropped: request more after you have seen the current page.
/// Each page is one element, also an empty page. The sequence ends after the last page. Without a signal it ends after
/// the initial pages. If the signal has ended, it ends as soon as it would wait for an output. Making the iterator
/// subscribes to the signal; pages are loaded from the first `next()` on. Each iteration loads its own pages.
///
/// **Errors.** If the first page fails, the sequence fails. If a later page fails, `onStatus` is called and no element
/// is emitted. The next output retries that page; the remaining initial pages then follow. Such an error fails the
/// sequence if there is no signal, or when the signal ends. If a page has a cursor that was seen before, the sequence
/// delivers that page and then fails with a ``RepeatedCursorError``: such paging has no end. Cycles of up to 1,024
/// pages are detected when they close, longer ones later.
///
/// **Cancellation.** `next()` returns nil when the load in progress has returned. Errors of that load are ignored.
///
/// **Back-pressure.** One page is loaded ahead of the consumer.
///
/// **Cost.** One task for each iteration. Memory does not grow with the number of pages.
///
/// - Parameters:
///   - signal: Loads a further page at each output; nil to load only the initial pages.
///   - pages: How many pages are loaded at the start; `.max` for all of them. With 0 the first page waits for an
///     output, too.
///   - first: Loads the first page.
///   - next: Loads the page of a cursor.
///   - onStatus: Called with each new status, in order, in the task of the sequence, which waits for it to return.
public func paginated<Item: Sendable, Cursor: Hashable & Sendable>(
    by signal: Signal?, initially pages: Int = 1,
    first: @escaping @Sendable () async throws -> Page<Item, Cursor>,
    next: @escaping @Sendable (Cursor) async throws -> Page<Item, Cursor>,
    onStatus: @escaping @Sendable (PageStatus) -> Void = { _ in }
) -> some AsyncSequence<[Item], any Error> & Sendable {
    Paginated(signal: signal, initially: pages, first: first, next: next, onStatus: onStatus)
}

struct Paginated<Item: Sendable, Cursor: Hashable & Sendable>: AsyncSequence, Sendable {
    typealias Element = [Item]
    typealias Failure = any Error

    let signal: Signal?
    let initially: Int
    let first: @Sendable () async throws -> Page<Item, Cursor>
    let next: @Sendable (Cursor) async throws -> Page<Item, Cursor>
    let onStatus: @Sendable (PageStatus) -> Void

    func makeAsyncIterator() -> DriverIterator<[Item], any Error> {
        let storage = PaginatedStorage(self)
        return DriverIterator { try await storage.operate($0) }
    }
}
