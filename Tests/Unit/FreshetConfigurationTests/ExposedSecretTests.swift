import Testing

@testable import FreshetConfiguration

@Suite("Warnings about secrets that a request shows to others")
struct ExposedSecretTests {
    private func warnings(_ source: String) -> [String] {
        load(pipeline: "source: {\(source)}\ncache: {file: x}\n").diagnostics.map {
            "\($0.severity.rawValue) \($0.keyPath ?? "")"
        }
    }

    @Test("a secret header over http is a warning, unless the host is this machine")
    func header() {
        let headers = "headers: {Authorization: Bearer abc, Accept: a/b}"
        #expect(warnings("url: http://a.example/, \(headers)") == ["warning source.headers.Authorization"])
        #expect(warnings("url: https://a.example/, \(headers)") == [])
        #expect(warnings("url: http://127.0.0.1/, \(headers)") == [])
        #expect(warnings("url: http://a/, unix-socket: /run/a.sock, \(headers)") == [])
    }

    @Test("a secret in the query is a warning that does not show the secret")
    func query() throws {
        for name in ["token", "access_token", "apiKey", "key"] {
            #expect(warnings("url: 'https://a.example/?a=1&\(name)=s3cret'") == ["warning source.url"], "\(name)")
        }
        #expect(warnings("url: 'https://a.example/?keyword=jazz&token=&sort_key=id'") == [])
        let found = load(pipeline: "source: {url: 'https://a.example/?token=s3cret'}\ncache: {file: x}\n").diagnostics
        #expect(try #require(found.first).text().contains("s3cret") == false)
    }
}
