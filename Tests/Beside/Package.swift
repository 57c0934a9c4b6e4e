// swift-tools-version: 6.2
// Tests Freshet's signals together with swift-async-algorithms in one file. It is a separate package, so that users of
// Freshet do not have to fetch swift-async-algorithms.
import PackageDescription

let package = Package(
    name: "beside",
    dependencies: [
        .package(name: "freshet", path: "../.."),
        .package(url: "https://github.com/apple/swift-async-algorithms", exact: "1.1.4"),
    ],
    targets: [
        .testTarget(
            name: "BesideTests",
            dependencies: [
                .product(name: "FreshetSignals", package: "freshet"),
                .product(name: "FreshetTestKit", package: "freshet"),
                .product(name: "AsyncAlgorithms", package: "swift-async-algorithms"),
            ],
            swiftSettings: [
                .enableUpcomingFeature("ExistentialAny"),
                .enableUpcomingFeature("MemberImportVisibility"),
                .enableUpcomingFeature("InternalImportsByDefault"),
            ])
    ],
    swiftLanguageModes: [.v6]
)
