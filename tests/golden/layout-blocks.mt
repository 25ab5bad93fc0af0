model{y=linear(h,3)
}
train    {   loss=cross_entropy(y,label)
  optimizer = sgd(0.1) }
fn f(x[t,_],n=-1){ if n>1 {return x}else if n<0 { return -x }
      else_=n-1
    return x*else_ }
data {

  x:f32[6 ,2]
  label:class[3]
  train=idx("x","label")   # files


}
