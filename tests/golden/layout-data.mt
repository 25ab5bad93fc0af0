data {
 examples=csv( "sales.csv" ,columns=[ "date","_",
   "price" ], header=true )   # a table
 split=80/10 / 10
 day:f32[ 1 ]=day_of_year("date",format = "%d.%m.%Y")# of the order
 price : f32=column( "price",missing=- 1)
}
model { y = linear(day, 1) }
train { loss = mse(y, reshape(price, [1]))
 optimizer = sgd(0.1) }
