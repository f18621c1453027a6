//! Encryption by TLS.

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

/// The certificate and the key with which a server encrypts.
#[derive(Clone)]
pub struct Tls {
    chain: PathBuf,
    key: PathBuf,
    config: Arc<RwLock<Arc<ServerConfig>>>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { chain, key, .. } = self;
        f.debug_struct("Tls")
            .field("chain", chain)
            .field("key", key)
            .finish_non_exhaustive()
    }
}

fn read(chain: &Path, key: &Path) -> Result<Arc<ServerConfig>, String> {
    let cannot = |path: &Path, why: &dyn fmt::Display| format!("{}: {why}", path.display());
    let certificates: Vec<_> = CertificateDer::pem_file_iter(chain)
        .and_then(Iterator::collect)
        .map_err(|error| cannot(chain, &error))?;
    if certificates.is_empty() {
        return Err(cannot(chain, &"there is no certificate"));
    }
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| cannot(key, &error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| {
            builder
                .with_no_client_auth()
                .with_single_cert(certificates, private)
        });
    config.map(Arc::new).map_err(|error| cannot(chain, &error))
}

impl Tls {
    /// Reads a chain of certificates and a private key, both in PEM.
    ///
    /// # Errors
    /// A file cannot be read, has nothing of the kind, or the key is not the certificate's.
    pub fn read(chain: &Path, key: &Path) -> Result<Self, String> {
        Ok(Self {
            chain: chain.to_owned(),
            key: key.to_owned(),
            config: Arc::new(RwLock::new(read(chain, key)?)),
        })
    }

    /// Reads both files again, for connections that come from now on.
    pub(crate) fn renew(&self) -> Result<(), String> {
        let config = read(&self.chain, &self.key)?;
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = config;
        Ok(())
    }

    /// Begins a session with a client.
    pub(crate) fn session(&self) -> Result<ServerConnection, rustls::Error> {
        let config = self.config.read().unwrap_or_else(PoisonError::into_inner);
        ServerConnection::new(Arc::clone(&config))
    }
}
