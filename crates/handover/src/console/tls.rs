//! TLS, for a console that other machines reach: with a certificate of the user's own, or one that is
//! made here and vouches for itself.

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use handover_host::system::clock;
use handover_host::system::dirs::{DirError, private_dir};
use handover_protocol::Timestamp;
use handover_protocol::server::atomic_file;
use rcgen::{CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, KeyPair};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::{self, ServerConfig};

/// The file of the certificate that is made here, with its key.
const FILE: &str = "certificate.json";
/// How long a certificate is good for: phones take none that is good for longer than 398 days.
const GOOD_FOR: Duration = Duration::from_secs(397 * 86_400);
/// How long it must be good for still, else a new one is made.
const GOOD_STILL: Duration = Duration::from_secs(30 * 86_400);

/// Why TLS cannot be spoken.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The certificates or the key cannot be read.
    #[error("cannot read {}: {source}; it must be PEM", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: pem::Error,
    },
    /// There is no certificate in the file.
    #[error("there is no certificate in {}", .0.display())]
    Empty(PathBuf),
    /// They do not fit together, or are not of a kind that is understood.
    #[error("this certificate cannot be used: {0}")]
    Unfit(#[from] rustls::Error),
    /// None can be made.
    #[error("cannot make a certificate: {0}")]
    Make(#[from] rcgen::Error),
    /// There is no place for it.
    #[error(transparent)]
    Place(#[from] DirError),
    /// It cannot be stored.
    #[error("cannot store {}: {source}", path.display())]
    Store {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// A way to speak TLS, and what the certificate is known by.
pub struct Tls {
    /// For every connection.
    pub acceptor: TlsAcceptor,
    /// The SHA-256 of the certificate, by which a person knows it.
    pub fingerprint: String,
}

/// A certificate that was made here, as it is stored.
#[derive(Debug, Serialize, Deserialize)]
struct Made {
    /// Whom it is for.
    names: Vec<String>,
    /// Until when it is good.
    until: Timestamp,
    /// The certificate, DER in base64.
    certificate: String,
    /// Its key, PKCS #8 in base64.
    key: String,
}

/// With the user's own certificate.
///
/// # Errors
/// [`TlsError`].
pub fn own(certificate: &Path, key: &Path) -> Result<Tls, TlsError> {
    let read = |path: &Path| {
        let path = path.to_owned();
        move |source| TlsError::Read { path, source }
    };
    let chain = CertificateDer::pem_file_iter(certificate).map_err(read(certificate))?;
    let chain = chain
        .collect::<Result<Vec<_>, _>>()
        .map_err(read(certificate))?;
    if chain.is_empty() {
        return Err(TlsError::Empty(certificate.to_owned()));
    }
    let key = PrivateKeyDer::from_pem_file(key).map_err(read(key))?;
    speak(chain, key)
}

/// With a certificate for `names` that vouches for itself: the one in the directory `place`, if that is
/// still good, or else a new one.
///
/// # Errors
/// [`TlsError`].
pub fn made(place: &Path, names: &[String]) -> Result<Tls, TlsError> {
    private_dir(place, "XDG_STATE_HOME")?;
    let path = place.join(FILE);
    let now = clock::wall();
    let stored = std::fs::read(&path).ok();
    let stored = stored.and_then(|bytes| serde_json::from_slice::<Made>(&bytes).ok());
    if let Some(tls) = stored.and_then(|stored| stored.still_good(names, now)) {
        return Ok(tls);
    }
    let made = Made::new(names, now)?;
    let json = serde_json::to_vec_pretty(&made).unwrap_or_default();
    atomic_file::replace(&path, &json).map_err(|source| TlsError::Store { path, source })?;
    made.speak()
        .unwrap_or_else(|| Err(rcgen::Error::CouldNotParseCertificate.into()))
}

/// Whom a certificate has to be for.
pub fn names(address: IpAddr, hosts: &[String]) -> Vec<String> {
    let mut names = hosts.to_vec();
    if address.is_unspecified() {
        names.extend(["localhost", "127.0.0.1", "::1"].map(str::to_owned));
    } else {
        names.push(address.to_string());
    }
    names.dedup();
    names
}

impl Made {
    fn new(names: &[String], now: Timestamp) -> Result<Self, TlsError> {
        let mut params = CertificateParams::new(names)?;
        let epoch = rcgen::date_time_ymd(1970, 1, 1);
        let now = Duration::from_millis(now.0);
        // Clocks differ a little.
        params.not_before = epoch + now.saturating_sub(Duration::from_secs(86_400));
        params.not_after = epoch + now + GOOD_FOR;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.distinguished_name = DistinguishedName::new();
        params
            .distinguished_name
            .push(DnType::CommonName, "Handover console");
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?;
        Ok(Self {
            names: names.to_vec(),
            until: Timestamp::from_unix(now + GOOD_FOR),
            certificate: STANDARD.encode(certificate.der()),
            key: STANDARD.encode(key.serialize_der()),
        })
    }

    fn still_good(&self, names: &[String], now: Timestamp) -> Option<Tls> {
        let until = Timestamp::from_unix(Duration::from_millis(now.0) + GOOD_STILL);
        let good = self.names == names && self.until > until;
        self.speak().filter(|_| good)?.ok()
    }

    fn speak(&self) -> Option<Result<Tls, TlsError>> {
        let certificate = STANDARD.decode(&self.certificate).ok()?;
        let key = STANDARD.decode(&self.key).ok()?;
        Some(speak(
            vec![certificate.into()],
            PrivatePkcs8KeyDer::from(key).into(),
        ))
    }
}

fn speak(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<Tls, TlsError> {
    let fingerprint = chain.first().map(Sha256::digest);
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let pairs = fingerprint
        .iter()
        .flatten()
        .map(|byte| format!("{byte:02X}"));
    Ok(Tls {
        fingerprint: pairs.collect::<Vec<_>>().join(":"),
        acceptor: TlsAcceptor::from(Arc::new(config)),
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_certificate_is_kept_for_as_long_as_it_is_good() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("console");
        let names = ["192.168.1.5".to_owned(), "desk.example".to_owned()];
        let first = made(&place, &names).unwrap().fingerprint;
        assert_eq!(first.len(), 32 * 3 - 1);
        assert_eq!(made(&place, &names).unwrap().fingerprint, first);
        let path = place.join(FILE);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        // Another name, and no longer good.
        let other = made(&place, &names[..1]).unwrap().fingerprint;
        assert_ne!(other, first);
        let mut stored: Made = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        stored.until = clock::wall();
        std::fs::write(&path, serde_json::to_vec(&stored).unwrap()).unwrap();
        assert_ne!(made(&place, &names[..1]).unwrap().fingerprint, other);
        // What was damaged is made anew.
        std::fs::write(&path, "{").unwrap();
        assert!(made(&place, &names).is_ok());
    }

    #[test]
    fn names_of_certificates() {
        let hosts = ["desk.example".to_owned()];
        let at = |address: &str| names(address.parse().unwrap(), &hosts).join(" ");
        assert_eq!(at("192.168.1.5"), "desk.example 192.168.1.5");
        assert_eq!(at("::"), "desk.example localhost 127.0.0.1 ::1");
    }

    #[test]
    fn files_that_hold_none() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.pem");
        assert!(matches!(own(&file, &file), Err(TlsError::Read { .. })));
        std::fs::write(&file, "").unwrap();
        assert!(matches!(own(&file, &file), Err(TlsError::Empty(_))));
    }
}
