use corelay_delegate::*;
use std::time::*;
use std::sync::atomic::*;
use std::sync::mpsc;
#[repr(align(64))] struct V(u64);
#[repr(align(128))] struct L(AtomicU64);
static A:L=L(AtomicU64::new(0)); static B:L=L(AtomicU64::new(0)); static C:L=L(AtomicU64::new(0));
static M: std::sync::Mutex<u64> = std::sync::Mutex::new(0);
enum Job { Rtt(u64,u64), Xadd(Duration), Mutex(Duration) }
fn xadd(d:Duration)->u64{ let t=Instant::now(); let mut n=0; while t.elapsed()<d { for _ in 0..256 { C.0.fetch_add(1,Ordering::Relaxed);} n+=256;} n }
fn mtx(d:Duration)->u64{ let t=Instant::now(); let mut n=0; while t.elapsed()<d { for _ in 0..256 { *M.lock().unwrap()+=1;} n+=256;} n }
fn main(){
    let rounds: usize = std::env::args().nth(1).map(|s|s.parse().unwrap()).unwrap_or(30);
    let slice=Duration::from_millis(std::env::args().nth(2).map(|s|s.parse().unwrap()).unwrap_or(20));
    let only=std::env::args().nth(3);
    corelay_topology::pin_current_thread(0).unwrap();
    let t=Trustees::dedicated(1).pin([1]).start().unwrap();
    let v: Vec<Trust<V>>=(0..1024).map(|_|t.entrust(V(0))).collect();
    let (tx,rx)=mpsc::channel::<Job>(); let (dtx,drx)=mpsc::channel::<u64>();
    std::thread::spawn(move||{ corelay_topology::pin_current_thread(1).unwrap(); 
        for j in rx { let r=match j { Job::Rtt(from,n)=>{ for i in from..from+n { while A.0.load(Ordering::Acquire)!=i {std::hint::spin_loop()} B.0.store(i,Ordering::Release);} 0}, Job::Xadd(d)=>xadd(d), Job::Mutex(d)=>mtx(d)}; dtx.send(r).unwrap(); } });
    let mut n=1u64;
    let mut rtt=||{ std::thread::sleep(Duration::from_micros(300)); let k=4000; tx.send(Job::Rtt(n,k)).unwrap(); let mut best=f64::MAX; for _ in 0..8 { let t0=Instant::now(); for _ in 0..k/8 { A.0.store(n,Ordering::Release); while B.0.load(Ordering::Acquire)!=n {std::hint::spin_loop()} n+=1; } best=best.min(t0.elapsed().as_nanos() as f64/(k/8) as f64);} drx.recv().unwrap(); best };
    let got=Box::leak(Box::new(std::cell::Cell::new(0u64))); let got:&'static std::cell::Cell<u64>=got;
    let mut rng=1u64;
    let mut res: std::collections::BTreeMap<(String,u32),Vec<f64>> = Default::default();
    for _ in 0..rounds { for what in ["xadd","mutex","apply","then1","then1k","post1","post4","lone"] {
        if let Some(o)=&only { if !o.split(',').any(|x|x==what) {continue} }
        let r0=rtt();
        let t0=Instant::now(); let mut ops=0u64;
        match what { 
          "xadd"=>{ tx.send(Job::Xadd(slice)).unwrap(); ops=xadd(slice)+drx.recv().unwrap(); }
          "mutex"=>{ tx.send(Job::Mutex(slice)).unwrap(); ops=mtx(slice)+drx.recv().unwrap(); }
          _=>{ while t0.elapsed()<slice { match what {
            "apply"=>{ let x=&v[0]; for _ in 0..256 { x.apply(|v|{v.0+=1; v.0}); } }
            "lone"=>{ let x=&v[0]; for _ in 0..256 { let g0=got.get(); x.apply_then(|v|{v.0+=1; v.0}, move|r| got.set(got.get()+(r!=0) as u64)); while got.get()==g0 { poll(); } } }
            "then1"=>{ let x=&v[0]; for _ in 0..256 { x.apply_then(|v|{v.0+=1; v.0}, move|r| got.set(got.get()+(r!=0) as u64)); } }
            "then1k"=>{ for _ in 0..256 { rng^=rng<<13; rng^=rng>>7; rng^=rng<<17; let x=&v[(rng>>32) as usize & 1023]; x.apply_then(|v|{v.0+=1; v.0}, move|r| got.set(got.get()+(r!=0) as u64)); } }
            "post1"=>{ let x=&v[0]; for _ in 0..256 { x.post(|v|{v.0+=1;}); } }
            "post4"=>{ for i in 0..256 { let x=&v[i&3]; x.post(|v|{v.0+=1;}); } }
            _=>unreachable!() } ops+=256; }
            barrier().unwrap(); }
        }
        let el=t0.elapsed().as_secs_f64(); let r1=rtt();
        let mode= |r:f64| if r<80. {0} else if r<250. {1} else {2};
        if mode(r0)==mode(r1) { res.entry((what.to_string(),mode(r0))).or_default().push(ops as f64/el/1e6); }
    }}
    for ((w,m),mut x) in res { x.sort_by(f64::total_cmp); println!("{w:8} {} n={:3} median {:8.2}  [{:.2} {:.2}]", ["smt ","near","far "][m as usize], x.len(), x[x.len()/2], x[x.len()/4], x[x.len()*3/4]); }
    let total:u64=v.iter().map(|x|x.apply(|v|v.0)).sum();
    println!("total {total} cb {} {:?}", got.get(), t.shutdown());
}
