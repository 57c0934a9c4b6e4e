/// Requests that were made close together: the first and the last, and their number.
package struct RequestBurst: Hashable, Sendable {
    package var first: WallTime
    package var last: WallTime
    package var count: Int

    package init(first: WallTime, last: WallTime, count: Int) {
        self.first = first
        self.last = last
        self.count = count
    }
}
