/// A collection that is loaded page by page: some pages at first, then one at each output of a signal.
///
/// ```
/// signal                        --s-----ss-------s-s----
/// paginated(by:initially: 1)    p---q-----r---------(s|)    each page takes two frames, s is the last one
/// ```
///
/// **Meaning.** The first `initially` pages are loaded one after the other, without being asked for. Then it is dormant:
/// any number of outputs loads one page. Outputs between the start of a page and its delivery, which is when the
/// consumer takes it, are dropped: ask for more when you have seen what there is. Each page is one element, an empty one
/// too. After the last page the sequence ends; without a signal, after the initial ones; when the signal ends, as soon
/// as it would wait for it. The signal is subscribed when the iterator is made; pages are loaded from the first `next()`
/// on. Each iteration loads for itself.
///
/// **Errors.** The first page's failure fails the sequence. A later one is told to `onStatus` and emits nothing, and the
/// next output tries the same page again; what was still to come by itself then follows. It fails the sequence if there
/// is no signal, or when the signal ends. A cursor that was seen before fails the sequence with a
/// ``RepeatedCursorError``, after the page that brought it: such paging has no end. Cycles of up to 1,024 pages are seen
/// when they close, longer ones later.
///
/// **Cancellation.** `next()` returns nil when the load under way has returned. What it throws then is no news.
///
/// **Back-pressure.** One page is loaded ahead of the consumer.
///
/// **Cost.** One task an iteration. Memory does not grow with the number of pages.
///
/// - Parameters:
///   - signal: Asks for more; nil for never.
///   - pages: How many pages are loaded without being asked for; `.max` for all of them. With 0 also the first one waits
///     for an output.
///   - first: Loads the first page.
///   - next: Loads the page to which a cursor leads.
///   - onStatus: Told what it is doing, from its task, in order. It is waited for.
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
