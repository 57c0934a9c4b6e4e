import FreshetModel

extension PageBookmark {
    /// The hash of a URL. Two URLs with one hash count as one page: an origin that provokes this only harms itself.
    static func number(of url: String) -> UInt64 {
        var number = BindingHash()
        number.add(url)
        return number.short
    }
}
