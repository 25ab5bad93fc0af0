data {
  train = idx("x", "label")
  x : f32[6]
  label : class[3]
}
model {
  a = - - 3-  -2*(-x)^- 2
  b=(a<1)and not(a>=-1)or a==2
  y = linear( x , -a , [ 1,-2 ] , bias=not true )
  repeat i in 0 .. 2*3 { y = y % i }
}
train {
  loss = cross_entropy(y, label)
  optimizer = sgd(0.1)
}
